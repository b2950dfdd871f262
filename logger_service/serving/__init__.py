"""What a server, a child process and an actor share: a host behind gRPC. Importing it loads nothing else."""
