"""The roles that come with callboard, as configuration for the runtime; it holds none yet."""
