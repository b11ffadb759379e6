"""Lower bounds on what mechanisms cost, and the check of what they ask of the rows by record and replay."""
