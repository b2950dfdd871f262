"""What both sides of the wire agree on. Needs nothing but numpy, protobuf and the generated `logger_service.v1`."""
