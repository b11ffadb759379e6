"""What one paper alone needs for its figures and tables; it comes in by its configs, as a user's own folder does."""
