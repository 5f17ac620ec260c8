"""nginx, as the benchmarks run it: an engine with a constant answer, or a proxy of streams."""

import os
import resource

from _rig import free_port, program

NGINX = """
{user}
worker_processes 1;
worker_rlimit_nofile {descriptors};
daemon off;
pid {folder}/{name}.pid;
error_log stderr warn;
events {{ worker_connections {connections}; }}
http {{
  access_log off;
  default_type application/json;
  keepalive_requests 100000000;
  client_max_body_size 64m;
  client_body_buffer_size 2m;
  client_body_temp_path {folder}/{name}-body;
  proxy_temp_path {folder}/{name}-proxy;
  fastcgi_temp_path {folder}/{name}-fastcgi;
  uwsgi_temp_path {folder}/{name}-uwsgi;
  scgi_temp_path {folder}/{name}-scgi;
  {http}
}}
"""

STREAMING = """
  tcp_nodelay on;
  upstream engines {{
    {servers}
    keepalive 512;
    keepalive_requests 100000000;
  }}
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location / {{
      proxy_pass http://engines;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
    }}
  }}
"""


def most_descriptors():
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1]


def run_nginx(rig, name, core, port, http, connections=8192):
    config = rig.folder / f"{name}.conf"
    config.write_text(NGINX.format(user="user root;" if os.geteuid() == 0 else "",
                                   folder=rig.folder, name=name, http=http,
                                   connections=connections,
                                   descriptors=min(connections + 192, most_descriptors())))
    process = rig.start(name, [program("nginx"), "-e", "stderr", "-p", rig.folder, "-c", config],
                        core)
    process.wait_for_port(port)
    return process, f"http://127.0.0.1:{port}"


def start_nginx(rig, core, backends, **options):
    port = free_port()
    servers = (f"server {backend.removeprefix('http://')};" for backend in backends)
    return run_nginx(rig, "nginx", core, port,
                     STREAMING.format(port=port, servers="\n    ".join(servers)), **options)
