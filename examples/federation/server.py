"""What `flwr run` starts beside the SuperLink."""

from job import job

from fedlib.flower.app import server_app

app = server_app(job)
