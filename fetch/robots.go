package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"assay/corpus"
)

const (
	robotsBytes     = 500 << 10       // of a robots.txt that are read, as RFC 9309 asks for
	robotsLine      = 16 << 10        // longer lines are passed over
	robotsFresh     = 24 * time.Hour  // how long a stored robots.txt is used without asking again
	robotsRetry     = 5 * time.Minute // how long an unreachable one is not asked for again
	robotsRedirects = 5
	robotsCached    = 1024 // parsed files held in memory
)

// A robots refuses what the robots.txt of a host refuses (RFC 9309), and hands its Crawl-delay to the
// limiter.
type robots struct {
	client  *Client
	agent   string // our product token
	delay   time.Duration
	limiter *limiter
	next    sender

	mu    sync.Mutex
	known map[string]robotsEntry // by origin
}

type robotsEntry struct {
	rules *robotsRules
	key   string // request key of the robots.txt
	err   *Error // it could not be had
	until time.Time
}

func (r *robots) send(ctx context.Context, c *call) (answer, error) {
	if _, path := splitOrigin(c.url); !c.robots && c.api == nil && path != "/robots.txt" {
		if err := r.check(ctx, c.url); err != nil {
			return answer{}, err
		}
	}
	return r.next.send(ctx, c)
}

// check returns a *Error when the address may not be requested, or not now.
func (r *robots) check(ctx context.Context, url string) error {
	origin, path := splitOrigin(url)
	entry, err := r.entry(ctx, origin)
	if err != nil {
		return err
	}
	if entry.err != nil {
		return r.unreachable(ctx, entry, url)
	}
	r.limiter.setCrawlDelay(hostOf(url), min(entry.rules.crawlDelay(r.agent), r.delay))
	return r.refusal(ctx, entry, url, path)
}

// unreachable returns the error for an address whose robots.txt cannot be had. It depends on what was recorded
// of that, which is told to Answered.
func (r *robots) unreachable(ctx context.Context, entry robotsEntry, url string) error {
	if err := r.client.reportKey(ctx, entry.key); err != nil {
		return err
	}
	e := *entry.err
	e.URL = url
	if e.Reason != ReasonBlockedAddress && e.Reason != ReasonBadScheme && e.Reason != ReasonNoContact {
		e.Detail = strings.TrimSuffix("its robots.txt cannot be had: "+e.Detail, ": ")
	}
	return &e
}

// refusal returns the error for an address that the rules forbid. It depends on the robots.txt, which
// is told to Answered.
func (r *robots) refusal(ctx context.Context, entry robotsEntry, url, path string) error {
	rule := entry.rules.refusal(r.agent, path)
	if rule == "" {
		return nil
	}
	if err := r.client.reportKey(ctx, entry.key); err != nil {
		return err
	}
	return &Error{URL: url, Reason: ReasonRobots, Rule: rule}
}

// entry returns the rules of an origin, from memory, from the store, or from the host.
func (r *robots) entry(ctx context.Context, origin string) (robotsEntry, error) {
	now := r.client.now()
	r.mu.Lock()
	e, ok := r.known[origin]
	r.mu.Unlock()
	if ok && now.Before(e.until) {
		return e, nil
	}
	e, err := r.load(ctx, origin)
	if err != nil {
		return robotsEntry{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.known) >= robotsCached {
		clear(r.known) // they are in the store: reading them again is cheap
	}
	r.known[origin] = e
	return e, nil
}

// load gets a robots.txt through the rest of the chain. 4xx means that there are no rules; anything
// else that is no answer means that nothing may be requested now.
func (r *robots) load(ctx context.Context, origin string) (robotsEntry, error) {
	c := r.client.newCall(http.MethodGet, origin+"/robots.txt")
	c.robots, c.fresh = true, robotsFresh
	entry := robotsEntry{key: c.key, rules: &robotsRules{}}
	for hop := 0; ; hop++ {
		ans, err := r.client.cassette.send(ctx, c)
		var failed *Error
		switch {
		case errors.As(err, &failed):
			entry.err, entry.until = failed, r.client.now().Add(robotsRetry)
			if failed.Reason == ReasonHostDown {
				entry.until = r.client.now().Add(min(failed.Wait, robotsRetry)) // it is asked again when the host is
				return r.lastTime(entry, c)
			}
			return entry, nil
		case err != nil:
			return entry, err
		}
		// An old copy of a file that cannot be had now is used a little longer.
		if entry.until = ans.checked.Add(robotsFresh); entry.until.Before(r.client.now()) {
			entry.until = r.client.now().Add(robotsRetry)
		}
		if status := ans.ex.Status; status >= 400 && status < 500 && ans.ex.Class != ClassThrottled {
			return entry, nil
		}
		if failed := ans.ex.failure(); failed != nil && ans.ex.Class != ClassGone {
			failed.Tries = ans.tries
			entry.err, entry.until = failed, r.client.now().Add(robotsRetry)
			return entry, nil
		}
		next := redirectOf(ans.ex)
		if next == "" {
			return r.parsed(entry, ans)
		}
		if hop == robotsRedirects {
			return entry, nil // RFC 9309: as if there were none
		}
		c = r.client.newCall(http.MethodGet, next)
		c.robots, c.fresh = true, robotsFresh
	}
}

// lastTime says of a robots.txt that was not asked for what came of asking the last time, since a replay goes by that.
func (r *robots) lastTime(entry robotsEntry, c *call) (robotsEntry, error) {
	last, ok, err := r.client.archive.latest(c.key)
	if failed := last.failure(); err == nil && ok && failed != nil {
		entry.err = failed
	}
	return entry, err
}

func (r *robots) parsed(entry robotsEntry, ans answer) (robotsEntry, error) {
	body := ans.decoded
	if body == nil {
		var err error
		if body, err = r.client.decode(ans.ex, robotsBytes*8); err != nil {
			var failed *Error
			if !errors.As(err, &failed) {
				return entry, err
			}
			entry.err, entry.until = failed, r.client.now().Add(robotsRetry)
			return entry, nil
		}
	}
	entry.rules = parseRobots(body)
	return entry, nil
}

// stored returns the refusal of a stored robots.txt of any age, or how the host was last asked for one in vain;
// nil if there is neither: in replay nothing can be asked.
func (r *robots) stored(ctx context.Context, url string) error {
	origin, path := splitOrigin(url)
	r.mu.Lock()
	entry, ok := r.known[origin]
	r.mu.Unlock()
	if !ok {
		var err error
		if entry, err = r.load(ctx, origin); err != nil {
			return err
		}
		r.mu.Lock()
		r.known[origin] = entry
		r.mu.Unlock()
	}
	if entry.err != nil && entry.err.Reason != ReasonNotStored {
		return r.unreachable(ctx, entry, url)
	}
	return r.refusal(ctx, entry, url, path)
}

// splitOrigin cuts a canonical address into scheme, host and port, and path with query.
func splitOrigin(url string) (origin, path string) {
	scheme, rest, _ := strings.Cut(url, "://")
	i := strings.IndexAny(rest, "/?#")
	if i < 0 {
		return url, "/"
	}
	return scheme + "://" + rest[:i], rest[i:]
}

// robotsRules are the groups of one robots.txt.
type robotsRules struct {
	groups   []robotsGroup
	sitemaps []string
}

type robotsGroup struct {
	agents []string // product tokens in lower case, or *
	rules  []robotsRule
	delay  time.Duration
}

type robotsRule struct {
	allow   bool
	pattern string // with percent-encoding made uniform
	line    int
	text    string // as written
}

// parseRobots reads a robots.txt. It never fails: what it does not understand is passed over. A
// byte-order mark, any line ends and comments behind values are understood, and a user-agent line
// after a rule starts a new group even without a blank line between them.
func parseRobots(body []byte) *robotsRules {
	body = bytes.TrimPrefix(body, []byte("\ufeff"))
	if len(body) > robotsBytes {
		body = body[:robotsBytes]
		body = body[:bytes.LastIndexAny(body, "\r\n")+1] // half a rule would be another rule
	}
	rules := &robotsRules{}
	var group *robotsGroup
	open := false // the last line that counts named an agent
	text := strings.ReplaceAll(strings.ReplaceAll(string(body), "\r\n", "\n"), "\r", "\n")
	number := 0
	for line := range strings.SplitSeq(text, "\n") {
		number++
		line, _, _ = strings.Cut(line, "#")
		line = strings.TrimSpace(line)
		name, value, ok := strings.Cut(line, ":")
		if !ok || len(line) > robotsLine {
			continue
		}
		name, value = strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(value)
		switch name {
		case "user-agent":
			if !open {
				rules.groups = append(rules.groups, robotsGroup{})
				group = &rules.groups[len(rules.groups)-1]
			}
			open = true
			group.agents = append(group.agents, agentToken(value))
		case "allow", "disallow":
			open = false
			if group == nil || value == "" {
				continue
			}
			if value[0] != '/' && value[0] != '*' {
				value = "/" + value
			}
			group.rules = append(group.rules, robotsRule{allow: name == "allow", pattern: normalEscapes(value), line: number, text: line})
		case "crawl-delay":
			// Not in the RFC. It ends the list of agents as a rule does, or a delay for one robot would
			// be taken for the next one's.
			open = false
			if seconds, err := strconv.ParseFloat(value, 64); group != nil && err == nil && seconds > 0 {
				group.delay = max(group.delay, time.Duration(min(seconds, 1e6)*float64(time.Second)))
			}
		case "sitemap":
			rules.sitemaps = append(rules.sitemaps, value)
		}
	}
	return rules
}

// agentToken returns the product token of a user-agent line.
func agentToken(value string) string {
	value = strings.ToLower(value)
	if i := strings.IndexAny(value, "/ \t"); i >= 0 {
		value = value[:i]
	}
	return value
}

// applying returns the groups that name the agent, or else those for every agent.
func (r *robotsRules) applying(agent string) []robotsGroup {
	for _, token := range []string{strings.ToLower(agent), "*"} {
		var out []robotsGroup
		for _, g := range r.groups {
			for _, a := range g.agents {
				if a == token {
					out = append(out, g)
					break
				}
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}

// crawlDelay returns the longest delay that the agent's groups ask for, 0 if none does.
func (r *robotsRules) crawlDelay(agent string) time.Duration {
	var delay time.Duration
	for _, g := range r.applying(agent) {
		delay = max(delay, g.delay)
	}
	return delay
}

// refusal returns the rule that forbids a path with query, with its line, or "" if it is allowed. The
// longest matching pattern decides, and allow wins a tie.
func (r *robotsRules) refusal(agent, path string) string {
	if path == "/robots.txt" {
		return ""
	}
	path = normalEscapes(path)
	var best robotsRule
	found := false
	for _, g := range r.applying(agent) {
		for _, rule := range g.rules {
			longer := len(rule.pattern) > len(best.pattern) || len(rule.pattern) == len(best.pattern) && rule.allow && !best.allow
			if (!found || longer) && matchRobots(rule.pattern, path) {
				best, found = rule, true
			}
		}
	}
	if !found || best.allow {
		return ""
	}
	return fmt.Sprintf("line %d: %s", best.line, best.text)
}

// matchRobots reports whether a pattern matches the beginning of a path; * stands for any text and $
// at the end of a pattern for the end of the path.
func matchRobots(pattern, path string) bool {
	anchored := strings.HasSuffix(pattern, "$")
	parts := strings.Split(strings.TrimSuffix(pattern, "$"), "*")
	rest, ok := strings.CutPrefix(path, parts[0])
	if !ok {
		return false
	}
	if len(parts) == 1 {
		return !anchored || rest == ""
	}
	last := len(parts) - 1
	for _, part := range parts[1:last] {
		i := strings.Index(rest, part)
		if i < 0 {
			return false
		}
		rest = rest[i+len(part):]
	}
	if anchored {
		return strings.HasSuffix(rest, parts[last])
	}
	return strings.Contains(rest, parts[last])
}

// normalEscapes makes the percent-encoding of a path uniform: bytes outside ASCII are escaped, escaped
// letters, digits and -._~ are not, and hex digits are upper case.
func normalEscapes(s string) string {
	plain := true
	for i := 0; i < len(s) && plain; i++ {
		plain = s[i] != '%' && s[i] < utf8.RuneSelf
	}
	if plain {
		return s
	}
	const upper = "0123456789ABCDEF"
	b := make([]byte, 0, len(s)+16)
	for i := 0; i < len(s); i++ {
		c, escaped := s[i], false
		if c == '%' && i+2 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				c, escaped = byte(n), true
				i += 2
			}
		}
		if c >= utf8.RuneSelf || escaped && !unreserved(c) {
			b = append(b, '%', upper[c>>4], upper[c&15])
			continue
		}
		b = append(b, c)
	}
	return string(b)
}

func unreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

// redirectOf returns the address that a stored redirect leads to, "" if the exchange is none.
func redirectOf(ex Exchange) string {
	switch ex.Status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		if location := ex.Header.Get("Location"); location != "" {
			return corpus.ResolveURL(ex.URL, location)
		}
	}
	return ""
}
