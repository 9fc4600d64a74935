package fetch

import (
	"context"
	"errors"
)

// ErrStopped is the error of a request that was given up because of StopWith. It says nothing about its address.
var ErrStopped = errors.New("the run was stopped while a host was waited for")

type (
	stopKey  struct{}
	uncutKey struct{}
)

// StopWith returns a context whose requests end with ErrStopped once stop is done: waits for a host's turn, for
// Retry-After and between attempts, and attempts on their way. A paid attempt that was sent is waited for, since it
// would be paid and lost; the context itself ends that.
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

// uncut is the context of an attempt that is paid for: it goes on when waits end.
func uncut(ctx context.Context) context.Context {
	if outer, ok := ctx.Value(uncutKey{}).(context.Context); ok {
		return outer
	}
	return ctx
}
