"""Tables that the paper on query release alone has."""
