"""Tables that BinAgg alone has."""
