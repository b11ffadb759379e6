"""What a paper claims and publishes, beside what was found."""
