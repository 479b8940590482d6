"""The example's client, which also answers plain messages with as many bytes as they ask for."""

from flwr.app import ConfigRecord, Message, RecordDict
from relayed import app as relayed

app = relayed


@app.train()
def echo(message, context):  # noqa: ARG001 - Flower calls it so
    """What plain Flower would do with the same payload: no worker, no computation."""
    data = bytes(message.content["message"]["answer"])
    return Message(RecordDict({"message": ConfigRecord({"data": data})}), reply_to=message)
