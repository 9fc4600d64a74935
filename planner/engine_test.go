package planner

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"assay/corpus"
	"assay/fetch"

	"github.com/google/go-cmp/cmp"
)

const testKey = "engine-key-0123456789"

// engines sets up every backend with an Access at a server, with one key for all.
func (o *outside) engines(mode fetch.Mode) Env {
	env := Env{
		Web: o.client(mode), Access: Accesses(), Now: o.Now,
		Getenv: func(name string) string {
			if strings.HasSuffix(name, "_KEY") || strings.HasSuffix(name, "_TOKEN") {
				return testKey
			}
			return ""
		},
	}
	for name, at := range env.Access {
		at.Base, at.On, at.EngineID = o.server.URL, true, "engine-1"
		env.Access[name] = at
	}
	return env
}

// A form is what a test knows about an engine: replies in its shape, with invented contents.
type form struct {
	results func(more bool, urls ...string) string // a page
	empty   string                                 // a search that found nothing
	keyed   func(r *http.Request) string           // the key that a request carries
	last    int                                    // results after which it gives no more
	per     float64                                // USD that a page of results costs

	unsearched map[string]string // see play
}

func links(format string, urls []string) string {
	var out []string
	for _, u := range urls {
		out = append(out, fmt.Sprintf(format, u))
	}
	return strings.Join(out, ",")
}

func header(name string) func(*http.Request) string {
	return func(r *http.Request) string { return r.Header.Get(name) }
}

func parameter(name string) func(*http.Request) string {
	return func(r *http.Request) string { return r.URL.Query().Get(name) }
}

var forms = map[string]form{
	"brave": {
		results: func(more bool, urls ...string) string {
			return fmt.Sprintf(`{"type": "search", "query": {"original": "q", "more_results_available": %t}, "web": {"results": [%s]}}`, more,
				links(`{"title": "A <strong>toll</strong>", "url": %q, "description": "Tolls &amp; herring", "page_age": "2026-01-05T10:00:00"}`, urls))
		},
		empty: `{"type": "search", "query": {"original": "q", "more_results_available": false}}`,
		keyed: header("X-Subscription-Token"), last: 200, per: 0.005,
	},
	"google_cse": {
		results: func(more bool, urls ...string) string {
			next := ""
			if more {
				next = `, "nextPage": [{"startIndex": 11}]`
			}
			return fmt.Sprintf(`{"kind": "customsearch#search", "queries": {"request": [{}]%s}, "items": [%s]}`, next,
				links(`{"title": "A toll", "link": %q, "snippet": "Tolls"}`, urls))
		},
		empty: `{"kind": "customsearch#search", "queries": {"request": [{}]}, "searchInformation": {"totalResults": "0"}}`,
		keyed: parameter("key"), last: 100, per: 0.005,
	},
	"serper": {
		results: func(_ bool, urls ...string) string {
			return fmt.Sprintf(`{"searchParameters": {"q": "q"}, "organic": [%s], "credits": 1}`, links(`{"title": "A toll", "link": %q}`, urls))
		},
		empty: `{"searchParameters": {"q": "q"}, "organic": [], "credits": 1}`,
		keyed: header("X-Api-Key"), last: 100, per: 0.001,
	},
	"serpapi": {
		results: func(_ bool, urls ...string) string {
			return fmt.Sprintf(`{"search_metadata": {"status": "Success"}, "organic_results": [%s]}`, links(`{"position": 1, "title": "A toll", "link": %q}`, urls))
		},
		empty: `{"search_metadata": {"status": "Success"}, "error": "Google hasn't returned any results for this query."}`,
		keyed: parameter("api_key"), last: 100, per: 0.025,
	},
	"tavily": {
		results: func(_ bool, urls ...string) string {
			return fmt.Sprintf(`{"query": "q", "results": [%s], "response_time": 0.5}`, links(`{"title": "A toll", "url": %q, "content": "Tolls", "score": 0.9}`, urls))
		},
		empty: `{"query": "q", "results": []}`,
		keyed: func(r *http.Request) string { return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ") }, last: 20, per: 0.008,
	},
	"gdelt": {
		results: func(_ bool, urls ...string) string {
			return fmt.Sprintf(`{"articles": [%s]}`, links(`{"url": %q, "title": "A toll", "seendate": "20260105T101500Z", "domain": "news.example"}`, urls))
		},
		empty: `{}`,
		keyed: func(*http.Request) string { return testKey }, last: 250, // it asks for none
		unsearched: map[string]string{"a timeline": `{"query_details": {"title": "tolls"}, "timeline": []}`, "a status": `{"status": "error"}`, "its throttle text": "Please limit requests to one every 5 seconds.\n"},
	},
	"factcheck_tools": {
		results: func(more bool, urls ...string) string {
			next := ""
			if more {
				next = fmt.Sprintf(`, "nextPageToken": "after-%s"`, urls[len(urls)-1][40:])
			}
			return fmt.Sprintf(`{"claims": [%s]%s}`, links(`{"text": "Tolls rose.", "claimant": "Ina", "claimReview": [{"publisher": {"site": "checks.example"}, "url": %q, "title": "No, they fell", "reviewDate": "2026-01-05T10:00:00Z", "textualRating": "False"}]}`, urls), next)
		},
		empty: `{}`,
		keyed: parameter("key"), last: 1 << 30,
		unsearched: map[string]string{"a status": `{"status": "error"}`, "a token alone": `{"nextPageToken": "CAo"}`},
	},
	"x": {
		results: func(more bool, urls ...string) string {
			next := ""
			if more {
				next = fmt.Sprintf(`"next_token": "after-%s", `, urls[len(urls)-1][40:])
			}
			var ids []string
			for _, u := range urls {
				ids = append(ids, fmt.Sprintf(`{"id": %q, "text": "tolls", "created_at": "2026-01-05T10:00:00.000Z"}`, u[strings.LastIndex(u, "/")+1:]))
			}
			return fmt.Sprintf(`{"data": [%s], "meta": {%s"result_count": %d}}`, strings.Join(ids, ","), next, len(ids))
		},
		unsearched: map[string]string{"counts": `{"data": [], "meta": {"total_tweet_count": 0}}`, "a lookup": `{"data": []}`, "posts that are announced": `{"meta": {"result_count": 3}}`,
			"errors": `{"errors": [{"title": "Forbidden", "detail": "no"}]}`},
		empty: `{"meta": {"result_count": 0}}`,
		keyed: func(r *http.Request) string { return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ") }, last: 1 << 30, per: 0.05,
	},
}

// webSearches are the backends that answer a query with addresses of the web.
func webSearches(t *testing.T) []Backend {
	var out []Backend
	for _, b := range Backends {
		if _, ok := forms[b.Name]; ok {
			out = append(out, b)
		} else if b.Access != nil && b.Document == nil && b.Name != "wayback" {
			t.Errorf("no test knows the form of %s", b.Name)
		}
	}
	return out
}

func postURLs(from, to int) []string {
	var out []string
	for i := from; i < to; i++ {
		out = append(out, fmt.Sprintf("https://www.reddit.com/r/harborville/comments/p%d", 1000+i))
	}
	return out
}

// Every engine pages until there is enough, sends its key where it belongs and nowhere else, is paid
// out of its records, and answers the second time from the store.
func TestEngines(t *testing.T) {
	for _, b := range webSearches(t) {
		t.Run(b.Name, func(t *testing.T) {
			f := forms[b.Name]
			o := newOutside(t, nil)
			o.serve = func(rw http.ResponseWriter, r *http.Request) {
				if got := f.keyed(r); got != testKey {
					t.Errorf("%s carries the key %q", r.URL, got)
				}
				n := len(o.visits)
				reply(rw, 200, f.results(true, postURLs(10*n-10, 10*n)...))
			}
			env := o.engines(fetch.Live)
			q := Query{Text: "harbor tolls", K: 25}
			got, err := b.Find(t.Context(), env, q)
			want := min(25, f.last)
			if b.Name == "tavily" || b.Name == "gdelt" {
				want = 10 // one page is all there is
			}
			if err != nil || len(got) != want || got[0].URL == "" {
				t.Fatalf("%d results, %v; want %d", len(got), err, want)
			}
			visits := len(o.visits)
			usd := env.Web.(*fetch.Client).Stats().USD
			if per := f.per; per > 0 && (usd < per*float64(visits)-1e-9 || usd > per*float64(visits)+1e-9) {
				t.Errorf("$%g for %d requests", usd, visits)
			}
			for _, mode := range []fetch.Mode{fetch.Live, fetch.Replay} {
				env := o.engines(mode)
				again, err := b.Find(t.Context(), env, q)
				if diff := cmp.Diff(got, again); diff != "" || err != nil || len(o.visits) != visits {
					t.Errorf("%v: asked %d times, %v (-first +again):\n%s", mode, len(o.visits)-visits, err, diff)
				}
				if usd := env.Web.(*fetch.Client).Stats().USD; usd != 0 {
					t.Errorf("%v: what is stored costs $%g", mode, usd)
				}
			}
			o.lacks(testKey)
			if _, err := b.Find(t.Context(), Env{Access: map[string]Access{b.Name: {On: true, EngineID: "e"}}}, q); err == nil {
				t.Error("it searched without a client")
			}
		})
	}
}

// What found nothing is an answer; what is no answer is a failure that is not kept.
func TestEngineReplies(t *testing.T) {
	for _, b := range webSearches(t) {
		f := forms[b.Name]
		o := newOutside(t, nil)
		env := o.engines(fetch.Live)
		keyed := func(reason string) string {
			if b.Access.KeyEnv == "" {
				return ReasonForbidden
			}
			return reason
		}
		for _, tt := range []struct {
			name, body string
			status     int
			reason     string
		}{
			{"found nothing", f.empty, 200, ""},
			{"HTML", "<!doctype html><title>Search</title><p>results", 200, ReasonBadReply},
			{"nothing at all", "", 200, ReasonBadReply},
			{"cut", f.results(false, postURLs(0, 2)...)[:60], 200, ReasonBadReply},
			{"a list", `[1]`, 200, ReasonBadReply},
			{"text", "Internal error", 200, ReasonBadReply},
			{"no key", `{"message": "no"}`, 401, keyed(ReasonCredentials)},
			{"refused", `{"message": "no"}`, 403, keyed(ReasonCredentials)},
			{"too many", `{"message": "slow down"}`, 429, ReasonRateLimit},
			{"down", `{"message": "down"}`, 503, ReasonUnavailable},
			{"not there", `{"message": "not found"}`, 404, ReasonBadRequest},
			{"moved", ``, 301, ReasonBadRequest},
			{"bad query", `{"message": "bad query"}`, 400, ReasonBadRequest},
		} {
			t.Run(b.Name+" "+tt.name, func(t *testing.T) {
				o.serve = func(rw http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/account.json" {
						reply(rw, 200, `{"total_searches_left": 7, "this_hour_searches": 1, "account_rate_limit_per_hour": 9}`)
						return
					}
					reply(rw, tt.status, tt.body)
				}
				got, err := b.Find(t.Context(), env, Query{Text: tt.name, K: 10})
				visits := len(o.visits)
				if tt.reason == "" {
					if err != nil || len(got) != 0 {
						t.Fatalf("%v, %v", got, err)
					}
				} else if e := wantError(t, err, tt.reason); e.Excluded() != "" || e.StopsRun() != (tt.reason == ReasonCredentials) {
					t.Errorf("excluded %q, stops the run: %t", e.Excluded(), e.StopsRun())
				}
				_, _ = b.Find(t.Context(), env, Query{Text: tt.name, K: 10})
				if again := len(o.visits) > visits; again != (tt.reason != "") {
					t.Errorf("asked again: %t", again)
				}
			})
		}
		o.lacks(testKey)
	}
}

// A key that is missing ends the run before anything is sent.
func TestEngineWithoutKey(t *testing.T) {
	for _, b := range webSearches(t) {
		if b.Access.KeyEnv == "" {
			continue
		}
		for _, key := range []string{"", "short"} {
			o := newOutside(t, func(rw http.ResponseWriter, _ *http.Request) { reply(rw, 200, forms[b.Name].empty) })
			env := o.engines(fetch.Live)
			env.Getenv = func(string) string { return key }
			_, err := b.Find(t.Context(), env, Query{Text: "harbor tolls", K: 10})
			if e := wantError(t, err, ReasonCredentials); !e.StopsRun() || !strings.Contains(e.Detail, b.Access.KeyEnv) || len(o.visits) != 0 {
				t.Errorf("%s: %v after %d requests", b.Name, err, len(o.visits))
			}
		}
	}
}

// The words in which engines say that the money or the quota is used up.
func TestEngineQuotas(t *testing.T) {
	day := `{"error": {"code": 429, "message": "Quota exceeded for limit 'Queries per day'.", "errors": [{"reason": "rateLimitExceeded"}], "status": "RESOURCE_EXHAUSTED", "details": [{"reason": "RATE_LIMIT_EXCEEDED", "metadata": {"quota_limit": "DefaultPerDayPerProject"}}]}}`
	minute := `{"error": {"code": 429, "message": "Quota exceeded for limit 'Queries per minute per user'.", "errors": [{"reason": "rateLimitExceeded"}], "status": "RESOURCE_EXHAUSTED"}}`
	account := func(left, used int) string {
		return fmt.Sprintf(`{"total_searches_left": %d, "this_hour_searches": %d, "account_rate_limit_per_hour": 100}`, left, used)
	}
	for _, tt := range []struct {
		engine, name, body, account string
		status                      int
		headers                     []string
		reason                      string // of an APIError; a reason of fetch after "fetch "
		class                       string
		asked                       int           // requests for results
		parked                      time.Duration // that the next search meets; 0: none
	}{
		{"google_cse", "the day", day, "", 429, nil, "fetch " + fetch.ReasonParked, "transient", 1, 20 * time.Hour},
		{"google_cse", "the day, an older word", `{"error": {"code": 403, "message": "Daily Limit Exceeded", "errors": [{"reason": "dailyLimitExceeded"}]}}`, "", 403, nil, "fetch " + fetch.ReasonParked, "transient", 1, 20 * time.Hour},
		{"google_cse", "the minute", minute, "", 429, nil, ReasonRateLimit, "transient", 4, 0},
		{"google_cse", "a bad key", `{"error": {"code": 400, "message": "API key not valid. Please pass a valid API key.", "status": "INVALID_ARGUMENT"}}`, "", 400, nil, ReasonCredentials, "permanent", 1, 0},
		{"brave", "the month", `{"type": "ErrorResponse", "error": {"code": "RATE_LIMITED", "status": 429}}`, "", 429, []string{"X-RateLimit-Remaining", "0, 0", "X-RateLimit-Reset", "1, 900000"}, "fetch " + fetch.ReasonParked, "transient", 1, 24 * time.Hour},
		{"brave", "the second", `{"type": "ErrorResponse", "error": {"code": "RATE_LIMITED", "status": 429}}`, "", 429, []string{"X-RateLimit-Remaining", "0, 1200", "X-RateLimit-Reset", "1, 900000"}, ReasonRateLimit, "transient", 4, 0},
		{"brave", "a bad key", `{"type": "ErrorResponse", "error": {"code": "SUBSCRIPTION_TOKEN_INVALID", "detail": "no", "status": 422}}`, "", 422, nil, ReasonCredentials, "permanent", 1, 0},
		{"factcheck_tools", "the minute", minute, "", 429, nil, ReasonRateLimit, "transient", 4, 0},
		{"factcheck_tools", "the interface is not enabled", `{"error": {"code": 403, "message": "Fact Check Tools API has not been used in project 1 before or it is disabled.", "status": "PERMISSION_DENIED"}}`, "", 403, nil, ReasonCredentials, "permanent", 1, 0},
		{"serper", "no credits", `{"message": "Not enough credits", "statusCode": 400}`, "", 400, nil, ReasonQuota, "budget", 1, 0},
		{"serpapi", "no searches", `{"error": "Your account has run out of searches."}`, account(0, 5), 429, nil, ReasonQuota, "budget", 1, 0},
		{"serpapi", "the hour", `{"error": "You are exceeding the throughput."}`, account(400, 100), 429, nil, ReasonRateLimit, "transient", 1, 50 * time.Minute},
		{"serpapi", "an account that says nothing", `{"error": "You are exceeding the throughput."}`, `{}`, 429, nil, ReasonRateLimit, "transient", 1, 0},
		{"serpapi", "credit, with a good status", `{"error": "The credit of this account is too low."}`, "", 200, nil, ReasonQuota, "budget", 1, 0},
		{"serpapi", "an error, with a good status", `{"search_metadata": {"status": "Error"}}`, "", 200, nil, ReasonUnavailable, "transient", 1, 0},
		{"tavily", "the plan", `{"detail": {"error": "The plan's limit."}}`, "", 432, nil, ReasonQuota, "budget", 1, 0},
		{"tavily", "pay as you go", `{"detail": {"error": "The limit."}}`, "", 433, nil, ReasonQuota, "budget", 1, 0},
		{"gdelt", "a throttle text with a good status", "Please limit requests to one every 5 seconds.\n", "", 200, nil, ReasonRateLimit, "transient", 4, 0},
		{"gdelt", "a query that it refuses", "Your query was too short or too long.\n", "", 200, nil, ReasonBadRequest, "permanent", 1, 0},
		{"x", "the posts of the month", `{"title": "UsageCapExceeded", "detail": "Usage cap exceeded: Monthly product cap"}`, "", 429, nil, ReasonQuota, "budget", 1, 0},
		{"x", "the credits", `{"title": "CreditsDepleted", "detail": "no credits"}`, "", 402, nil, ReasonQuota, "budget", 1, 0},
	} {
		t.Run(tt.engine+" "+tt.name, func(t *testing.T) {
			asked := 0
			o := newOutside(t, func(rw http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/account.json" {
					reply(rw, 200, tt.account)
					return
				}
				asked++
				reply(rw, tt.status, tt.body, tt.headers...)
			})
			b, err := BackendNamed(tt.engine)
			if err != nil {
				t.Fatal(err)
			}
			env := o.engines(fetch.Live)
			got, err := b.Find(t.Context(), env, Query{Text: "harbor tolls", K: 10})
			var class interface{ FailureClass() string }
			if len(got) > 0 || !errors.As(err, &class) || class.FailureClass() != tt.class || asked != tt.asked {
				t.Errorf("%d results, %v after %d requests", len(got), err, asked)
			}
			if reason, ok := strings.CutPrefix(tt.reason, "fetch "); ok {
				var e *fetch.Error
				if !errors.As(err, &e) || e.Reason != reason {
					t.Errorf("error %v, want %s", err, reason)
				}
			} else {
				wantError(t, err, tt.reason)
			}
			_, err = b.Find(t.Context(), env, Query{Text: "herring", K: 10})
			var parked *fetch.Error
			if is := errors.As(err, &parked) && parked.Reason == fetch.ReasonParked; is != (tt.parked > 0) || is && parked.Wait < tt.parked-time.Minute {
				t.Errorf("the next search: %v", err)
			}
			if env.Web.(*fetch.Client).Stats().USD != 0 && tt.status != 200 {
				t.Error("a refusal is paid for")
			}
		})
	}
}

// Days are asked for in the words of each interface; who has none refuses.
func TestEngineDates(t *testing.T) {
	want := map[string]string{
		"brave":      "freshness=2025-03-01to2026-01-31",
		"gdelt":      "startdatetime=20250301000000&enddatetime=20260131235959",
		"google_cse": "sort=date%3Ar%3A20250301%3A20260131",
		"serpapi":    "tbs=cdr%3A1,cd_min%3A3%2F1%2F2025,cd_max%3A1%2F31%2F2026",
		"serper":     `"tbs":"cdr:1,cd_min:3/1/2025,cd_max:1/31/2026"`,
		"tavily":     `"start_date":"2025-03-01","end_date":"2026-01-31"`,
		"x":          "start_time=2025-03-01T00%3A00%3A00Z&end_time=2026-01-31T23%3A59%3A59Z",
	}
	for _, b := range Backends {
		var sent string
		o := newOutside(t, nil)
		o.serve = func(rw http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			sent = r.URL.RawQuery + string(body)
			reply(rw, 200, forms[b.Name].empty)
		}
		q := Query{Text: "harbor tolls", K: 10, From: "2025-03-01", To: "2026-01-31"}
		_, err := b.Find(t.Context(), o.engines(fetch.Live), q)
		switch words, ok := want[b.Name]; {
		case ok && (err != nil || !strings.Contains(sent, words)):
			t.Errorf("%s: %v, asked %s", b.Name, err, sent)
		case !ok && !b.Dates:
			wantError(t, err, ReasonBadRequest)
		}
	}
	o := newOutside(t, func(rw http.ResponseWriter, _ *http.Request) { reply(rw, 200, forms["brave"].empty) })
	if _, err := brave.Find(t.Context(), o.engines(fetch.Live), Query{Text: "x", K: 1, From: "2025-03-01"}); err != nil || !strings.Contains(o.visits[0], "freshness=2025-03-01to2026-03-01") {
		t.Errorf("an open end: %v, %s", err, o.visits)
	}
}

// In the RAGuard policy a web search is kept to Reddit, and hosts of hits are looked at again.
func TestEnginesInThePlan(t *testing.T) {
	hits := []string{"https://www.reddit.com/r/harborville/comments/aa1/tolls/", "https://www.reddit.com/r/harborville/", "https://elsewhere.example/", "https://evil-reddit.com/r/a/comments/aa9/"}
	restricted := map[string]string{"gdelt": "domain%3Areddit.com", "tavily": `"include_domains":["reddit.com"]`, "serper": "site:reddit.com", "factcheck_tools": "reviewPublisherSiteFilter=reddit.com"}
	for _, b := range webSearches(t) {
		if b.Name == "x" {
			continue
		}
		t.Run(b.Name, func(t *testing.T) {
			var sent string
			o := newOutside(t, nil)
			o.serve = func(rw http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if sent == "" {
					sent = r.URL.RawQuery + string(body)
				}
				reply(rw, 200, forms[b.Name].results(false, hits...))
			}
			trace, err := Plan(t.Context(), o.engines(fetch.Live), Settings{Backend: b.Name}, corpus.Claim{ID: "c_1", Text: "harbor tolls"})
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, c := range trace.Candidates {
				got[c.DocumentID] = c.Reason
			}
			want := map[string]string{"reddit:t3_aa1": "", corpus.DocumentID(hits[1]): DropSubredditPage, corpus.DocumentID(hits[2]): DropElsewhere, corpus.DocumentID(hits[3]): DropElsewhere}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			words := restricted[b.Name]
			if words == "" {
				words = "site%3Areddit.com"
			}
			if !strings.Contains(sent, words) {
				t.Errorf("asked %s", sent)
			}
		})
	}
	env := newOutside(t, nil).engines(fetch.Live)
	_, err := Plan(t.Context(), env, Settings{Backend: "x"}, corpus.Claim{ID: "c_1", Text: "harbor tolls"})
	wantError(t, err, ReasonNotConfigured)
}

func TestBackendsThatAreOffOrOver(t *testing.T) {
	o := newOutside(t, func(rw http.ResponseWriter, _ *http.Request) { reply(rw, 200, forms["google_cse"].empty) })
	env := o.engines(fetch.Live)
	env.Access["x"] = *xPosts.Access
	_, err := xPosts.Find(t.Context(), env, Query{Text: "tolls", K: 1})
	wantError(t, err, ReasonNotConfigured)
	env.Now = func() time.Time { return time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC) }
	_, err = googleCSE.Find(t.Context(), env, Query{Text: "tolls", K: 1})
	if e := wantError(t, err, ReasonNotConfigured); !strings.Contains(e.Detail, "2027-01-01") || len(o.visits) != 0 {
		t.Errorf("%v", err)
	}
	env.Now = func() time.Time { return time.Date(2026, 12, 31, 23, 0, 0, 0, time.UTC) }
	if _, err = googleCSE.Find(t.Context(), env, Query{Text: "tolls", K: 1}); err != nil {
		t.Error(err)
	}
	at := env.Access["google_cse"]
	at.EngineID = ""
	env.Access["google_cse"] = at
	_, err = googleCSE.Find(t.Context(), env, Query{Text: "tolls", K: 1})
	wantError(t, err, ReasonNotConfigured)
}

// The kind of HD-10 for every engine: a pause that is asked for is kept.
func TestHD10Engines(t *testing.T) {
	for _, b := range webSearches(t) {
		if b.Name == "serpapi" {
			continue // its 429 is answered by asking for the account, see TestEngineQuotas
		}
		for name, pause := range map[string]func(now time.Time) string{
			"a date":  func(now time.Time) string { return now.Add(40 * time.Second).UTC().Format(http.TimeFormat) },
			"seconds": func(time.Time) string { return "40" },
		} {
			o := newOutside(t, nil)
			o.serve = func(rw http.ResponseWriter, _ *http.Request) {
				if len(o.visits) == 1 {
					rw.Header()["Date"] = []string{o.now.UTC().Format(http.TimeFormat)}
					reply(rw, 429, `{"message": "Too Many Requests"}`, "Retry-After", pause(o.now))
					return
				}
				reply(rw, 200, forms[b.Name].results(false, postURLs(0, 1)...))
			}
			got, err := b.Find(t.Context(), o.engines(fetch.Live), Query{Text: "harbor tolls", K: 1})
			if err != nil || len(got) != 1 || len(o.at) != 2 {
				t.Fatalf("%s, %s: %v, %v after %d requests", b.Name, name, got, err, len(o.at))
			}
			if wait := o.at[1].Sub(o.at[0]); wait < 40*time.Second || wait > 43*time.Second {
				t.Errorf("%s, %s: asked again after %v", b.Name, name, wait)
			}
		}
	}
}

// The kind of HD-24 for every engine, and for a search that is kept to no domain: what a result names is
// dialled by nobody but the client, which refuses it.
func TestHD24Engines(t *testing.T) {
	hits, dialled := innerAddresses(t)
	for _, b := range webSearches(t) {
		if b.Name == "x" {
			continue // its results are addresses that we write
		}
		o := newOutside(t, func(rw http.ResponseWriter, _ *http.Request) { reply(rw, 200, forms[b.Name].results(false, hits...)) })
		env := o.engines(fetch.Live)
		got, err := b.Find(t.Context(), env, Query{Text: "harbor tolls", K: 10})
		if err != nil || len(got) != len(hits) {
			t.Fatalf("%s: %d results, %v", b.Name, len(got), err)
		}
		for _, r := range got {
			_, err := env.Web.(*fetch.Client).Get(t.Context(), fetch.Request{URL: r.URL})
			var refused *fetch.Error
			if !errors.As(err, &refused) || refused.Excluded() != fetch.ReasonBlockedAddress && refused.Excluded() != fetch.ReasonBadScheme {
				t.Errorf("%s: %s: %v", b.Name, r.URL, err)
			}
		}
		trace, err := Plan(t.Context(), env, Settings{Backend: b.Name}, corpus.Claim{ID: "c_1", Text: "harbor tolls"})
		if err != nil || len(trace.Kept()) != 0 || len(trace.Candidates) == 0 {
			t.Errorf("%s: kept %+v of %+v, %v", b.Name, trace.Kept(), trace.Candidates, err)
		}
	}
	if n := dialled.Load(); n != 0 {
		t.Errorf("the listener was dialled %d times", n)
	}
}
