package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// reference is another project's proxy, which only forwards. Its configuration favors speed.
type reference struct {
	name    string // of the program
	pkg     string // Debian's
	config  string // @DIR@, @LISTEN@, @UPSTREAM@ and @N@ are filled in
	options []string
}

var references = []reference{
	{name: "nginx", pkg: "nginx-light", options: []string{"-p", "@DIR@", "-e", "@DIR@/nginx.err", "-c", "@DIR@/nginx.conf"}, config: `
daemon off;
worker_processes @N@;
worker_rlimit_nofile 16384;
pid @DIR@/nginx.pid;
error_log @DIR@/nginx.err warn;
events { worker_connections 8192; }
http {
	access_log off;
	client_body_temp_path @DIR@/nginx_body;
	proxy_temp_path @DIR@/nginx_proxy;
	fastcgi_temp_path @DIR@/nginx_f;
	uwsgi_temp_path @DIR@/nginx_u;
	scgi_temp_path @DIR@/nginx_s;
	tcp_nodelay on;
	keepalive_requests 1000000000;
	keepalive_timeout 300s;
	client_body_buffer_size 128k;
	client_max_body_size 64m;
	upstream up {
		server @UPSTREAM@;
		keepalive 2048;
		keepalive_requests 1000000000;
	}
	server {
		listen @LISTEN@ backlog=4096;
		location / {
			proxy_pass http://up;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
			proxy_buffering off;
			proxy_request_buffering off;
			proxy_read_timeout 600s;
		}
	}
}
`},
	{name: "haproxy", pkg: "haproxy", options: []string{"-db", "-f", "@DIR@/haproxy.conf"}, config: `
global
	nbthread @N@
	maxconn 4096
defaults
	mode http
	timeout connect 5s
	timeout client 600s
	timeout server 600s
	timeout http-keep-alive 300s
	option http-no-delay
	option abortonclose
	http-reuse always
frontend clients
	bind @LISTEN@ backlog 4096
	default_backend up
backend up
	server up @UPSTREAM@ maxconn 4096 pool-max-conn 4096
`},
}

// references starts the installed references. It notes the others as missing, and the run
// continues without them.
func (p *processes) references(upstream string, history func(int) string) error {
	for _, r := range references {
		program, err := exec.LookPath(r.name)
		if err != nil {
			p.missing = append(p.missing, fmt.Sprintf("%s is not installed (Debian: apt-get install %s): nothing here is compared with it", r.name, r.pkg))
			fmt.Fprintln(os.Stderr, "bench: SKIPPED:", p.missing[len(p.missing)-1])
			continue
		}
		address := freeAddress()
		fill := strings.NewReplacer("@DIR@", p.dir, "@LISTEN@", address, "@UPSTREAM@", upstream, "@N@", strconv.Itoa(runtime.NumCPU()))
		if err := os.WriteFile(filepath.Join(p.dir, r.name+".conf"), []byte(fill.Replace(r.config)), 0o600); err != nil {
			return err
		}
		options := make([]string, len(r.options))
		for i, o := range r.options {
			options[i] = fill.Replace(o)
		}
		pid, err := p.start(address, nil, program, options...)
		if err != nil {
			return err
		}
		p.targets = append(p.targets, &target{name: r.name, address: address, pid: pid, history: history})
	}
	return nil
}
