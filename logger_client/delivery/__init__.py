"""How what was logged gets to a host: buffered, numbered, sent, acknowledged, and sent again where it must be."""
