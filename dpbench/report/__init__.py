"""From stored trials to frames, tables and figures. Only the commands that report import these modules."""
