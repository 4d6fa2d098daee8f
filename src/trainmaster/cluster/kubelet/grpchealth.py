"""One call of the standard gRPC health check, over a connection that is already there.

One unary call with a message of a single field is all a probe needs. The gRPC package would bring a binary of tens of
megabytes and its own threads for it; `h2` is the protocol alone, in Python, without input or output of its own.
"""

import asyncio
import socket
import struct

import h2.config
import h2.connection
import h2.events
import h2.exceptions

from trainmaster.api.core import RELEASE

_STATES = ("UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN")
_UNIMPLEMENTED = 12


async def check(stream: socket.socket, where: str, service: str) -> tuple[bool, str]:
    """Whether the service says that it serves, and otherwise what it said. Takes the connection."""
    reader, writer = await asyncio.open_connection(sock=stream)
    try:
        return _verdict(*await _call(reader, writer, where, service))
    except (OSError, h2.exceptions.ProtocolError) as error:
        return False, f"error: health rpc probe failed: {error}"
    finally:
        writer.transport.abort()


async def _call(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, where: str, service: str
) -> tuple[dict[str, str], bytes]:
    """The headers and trailers of the answer, and its message."""
    connection = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
    connection.initiate_connection()
    connection.send_headers(1, [
        (":method", "POST"), (":scheme", "http"), (":path", "/grpc.health.v1.Health/Check"), (":authority", where),
        ("te", "trailers"), ("content-type", "application/grpc"), ("user-agent", f"kube-probe/{RELEASE}"),
    ])
    connection.send_data(1, _message(service), end_stream=True)
    headers: dict[str, str] = {}
    said = bytearray()
    while True:
        writer.write(connection.data_to_send())
        await writer.drain()
        data = await reader.read(1 << 16)
        if not data:
            return headers, bytes(said)
        for event in connection.receive_data(data):
            if isinstance(event, h2.events.ResponseReceived | h2.events.TrailersReceived):
                headers |= {str(name): str(value) for name, value in event.headers or ()}
            elif isinstance(event, h2.events.DataReceived):
                said += event.data or b""
                connection.acknowledge_received_data(event.flow_controlled_length or 0, 1)
            elif isinstance(event, h2.events.StreamEnded | h2.events.StreamReset | h2.events.ConnectionTerminated):
                return headers, bytes(said)


def _message(service: str) -> bytes:
    """HealthCheckRequest in a gRPC frame: field 1 is the name of the service."""
    name = service.encode()
    assert len(name) < 1 << 14
    length = bytes([len(name)]) if len(name) < 128 else bytes([len(name) & 0x7F | 0x80, len(name) >> 7])
    body = b"\x0a" + length + name if name else b""
    return struct.pack(">BI", 0, len(body)) + body


def _verdict(headers: dict[str, str], said: bytes) -> tuple[bool, str]:
    status = headers.get("grpc-status", "")
    if status == str(_UNIMPLEMENTED):
        return False, ("error: this server does not implement the grpc health protocol (grpc.health.v1.Health): "
                       f"{headers.get('grpc-message', '')}")
    if status != "0":
        why = f"code {status}: {headers.get('grpc-message', '')}" if status else "the server did not answer as gRPC"
        return False, f"error: health rpc probe failed: {why}"
    # HealthCheckResponse: field 1 is the state; a state of zero is not written at all.
    state = said[6] if len(said) >= 7 and said[5] == 0x08 else 0
    word = _STATES[state] if state < len(_STATES) else str(state)
    return state == 1, "" if state == 1 else f'service unhealthy (responded with "{word}")'
