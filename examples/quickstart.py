import sys

from logger_client import GrpcLogger

target = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:50051"
with GrpcLogger("quickstart", target) as logger:
    logger.log_hparams({"learning_rate": 0.1, "layers": [64, 64]})
    for step in range(10_000):
        logger.log_scalar("loss", 1 / (step + 1), step)
    print(logger.flush())
