"""HTTP and TLS of both ends, below servers and clients alike.

transport: the interface that both ends have; one request and its answer.
A server: serving (sockets), server_connections, server_connection, requests, answers, guard (Host, Origin),
    api_error (refusals), certificates, private_files.
A client: client, pool, client_connection, pipeline, batch_window, proxy, client_tls, errors.
"""
