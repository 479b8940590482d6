"""Flower as the link between the server and the clients of a federation."""
