package fetch

import (
	"context"
	"errors"
	"time"
)

// ErrStopped is the error of a request that was given up because of StopWith. It says nothing about its address.
var ErrStopped = errors.New("the run was stopped while a host was waited for")

type (
	stopKey  struct{}
	uncutKey struct{}
)

// lastWords is how long an attempt that was sent may still take once the run is stopped: most are there by then, and
// need not be asked for again.
const lastWords = time.Second

// StopWith returns a context whose requests end with ErrStopped once stop is done: waits for a host's turn, for
// Retry-After and between attempts at once, attempts on their way after lastWords. A paid attempt that was sent is
// waited for, since it would be paid and lost; the context itself ends that.
func StopWith(ctx, stop context.Context) context.Context {
	return context.WithValue(ctx, stopKey{}, stop)
}

// stoppable returns the context of a request's way through the chain. End has to be called.
func stoppable(ctx context.Context) (_ context.Context, end func()) {
	stop, ok := ctx.Value(stopKey{}).(context.Context)
	if !ok {
		return ctx, func() {}
	}
	within, cancel := context.WithCancel(context.WithValue(ctx, uncutKey{}, ctx))
	heard := context.AfterFunc(stop, cancel)
	return within, func() { heard(); cancel() }
}

// onItsWay is the context of an attempt, which goes on a little when waits end, or to its end where it is paid for.
func onItsWay(ctx context.Context, paid bool) (_ context.Context, end func()) {
	outer, ok := ctx.Value(uncutKey{}).(context.Context)
	switch {
	case !ok:
		return ctx, func() {}
	case paid:
		return outer, func() {}
	}
	stop := outer.Value(stopKey{}).(context.Context)
	attempt, cancel := context.WithCancel(outer)
	heard := context.AfterFunc(stop, func() { time.AfterFunc(lastWords, cancel) })
	return attempt, func() { heard(); cancel() }
}
