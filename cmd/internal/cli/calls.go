package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/admin"
)

// Runner runs the operations of a command: through a running proxy, or on the files of a
// proxy that does not run.
type Runner struct {
	Proxy *AdminClient  // nil if Host runs the operations
	Host  *service.Host // nil if Proxy runs the operations
	Says  string        // describes the place to people
	Close func() error
}

// Find returns the running proxy of a command. Without one it calls open, which opens the
// files for the command.
func Find(ctx context.Context, o ClientOptions, open func() (*Runner, error)) (*Runner, error) {
	running, found := FindProxy(ctx, o)
	if found == nil {
		return &Runner{Proxy: running, Says: "using " + running.String(), Close: func() error { return nil }}, nil
	}
	if o.ByAddress || !errors.Is(found, ErrNoProxy) {
		return nil, found
	}
	return open()
}

// Call runs an operation.
func Call[In, Out any](ctx context.Context, at *Runner, op service.Operation[In, Out], in In) (Out, error) {
	out, err := at.Run(ctx, op, in)
	of, _ := out.(Out)
	return of, err
}

// Each runs an operation with any number of records, and calls f for each.
func Each[In, Out any](ctx context.Context, at *Runner, op service.Operation[In, Out], in In, f func(Out) error) error {
	if at.Host != nil {
		return op.Each(ctx, at.Host, &in, f)
	}
	return askEach(ctx, at.Proxy, op, in, f)
}

// Run runs an operation that has one output, with an input of its type.
func (r *Runner) Run(ctx context.Context, op service.Mountable, in any) (any, error) {
	if r.Host != nil {
		out, _, err := service.Run(ctx, op, r.Host, service.Operator, in)
		return out, err
	}
	spec, _, example, _ := op.Describe()
	out := reflect.New(reflect.TypeOf(example))
	err := r.Proxy.fill(ctx, spec, in, out.Interface())
	return out.Elem().Interface(), err
}

// Ask runs an operation through a proxy.
func Ask[In, Out any](ctx context.Context, c *AdminClient, op service.Operation[In, Out], in In) (out Out, err error) {
	err = c.fill(ctx, op.Spec, in, &out)
	return out, err
}

// fill runs an operation, and stores its output in out.
func (c *AdminClient) fill(ctx context.Context, s service.Spec, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, s.Takes+callTimeout)
	defer cancel()
	body, err := c.ask(ctx, s, in)
	if err != nil {
		return err
	}
	defer body.Close()
	answer, err := io.ReadAll(io.LimitReader(body, maxAdminAnswer))
	if err != nil {
		return fmt.Errorf("read the answer of the admin side: %w", err)
	}
	if json.Unmarshal(answer, out) != nil {
		return c.notOurs()
	}
	return nil
}

// askEach is Ask for an operation with many records. An interrupted answer ends with an
// error line.
func askEach[In, Out any](ctx context.Context, c *AdminClient, op service.Operation[In, Out], in In, f func(Out) error) error {
	body, err := c.ask(ctx, op.Spec, in)
	if err != nil {
		return err
	}
	defer body.Close()
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxAdminAnswer)
	for lines.Scan() {
		var out Out
		var failed struct {
			Error string `json:"error"`
		}
		if json.Unmarshal(lines.Bytes(), &out) != nil || json.Unmarshal(lines.Bytes(), &failed) != nil {
			return c.notOurs()
		}
		if failed.Error != "" {
			return errors.New(failed.Error)
		}
		if err := f(out); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read the answer of the admin side: %w", err)
	}
	return nil
}

func (c *AdminClient) ask(ctx context.Context, s service.Spec, in any) (io.ReadCloser, error) {
	method, path, body, err := admin.Request(s, in)
	if err != nil {
		return nil, fmt.Errorf("ask the admin side: %w", err)
	}
	resp, err := c.send(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}
