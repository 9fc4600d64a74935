package corpus

import "testing"

func TestHD08LeadsToOnePage(t *testing.T) {
	const page = "https://check.example/claims/bridge"
	leads := []string{
		page + "?ref=rss",
		page + "?utm_source=x&fbclid=abc",
		"HTTPS://CHECK.example:443/claims/bridge#verdict",
		page,
		"http://check.example:80/claims/bridge",
		"  " + page + "?  ",
		page + "?&&",
		page + "?UTM_Campaign=spring&gclid=1&mc_eid=2&igshid=3#top",
		page + "?utm%5Fsource=newsletter",
		"https://check.example/claims/./x/../bridge",
		page + "?source=twitter",
	}
	want := ClaimID("Tolls doubled", "Ann Onym", page, "")
	for _, order := range []int{1, -1} { // the id must not depend on which lead comes first
		ids := map[string]bool{}
		for i := range leads {
			lead := leads[i]
			if order < 0 {
				lead = leads[len(leads)-1-i]
			}
			if got := IdentityURL(lead); got != page {
				t.Errorf("IdentityURL(%q) = %q, want %q", lead, got, page)
			}
			ids[ClaimID("Tolls doubled", "Ann Onym", lead, "")] = true
		}
		if len(ids) != 1 || !ids[want] {
			t.Errorf("leads in order %d give ids %v, want %s alone", order, ids, want)
		}
	}
}

func TestHD08OtherPagesStayApart(t *testing.T) {
	pages := []string{
		"https://check.example/claims/view?id=7",
		"https://check.example/claims/view?id=8",
		"https://check.example/claims/view",
		"https://check.example/claims/View?id=7",
		"https://check.example/claims/view/?id=7",
		"https://check.example:8443/claims/view?id=7",
		"https://other.example/claims/view?id=7",
		"https://check.example/claims/view?id=7&page=2",
		"https://check.example/claims/view?ref=chapter-2",
		"https://check.example/claims/view?source=census",
		"https://check.example/claims/view?utmost=1",
	}
	seen := map[string]string{}
	for _, p := range pages {
		id := IdentityURL(p)
		if other, ok := seen[id]; ok {
			t.Errorf("%s and %s share the identity %s", other, p, id)
		}
		seen[id] = p
	}
	if got, want := IdentityURL("https://check.example/claims/view?utm_source=x&id=7&fbclid=y"), pages[0]; got != want {
		t.Errorf("identity of the tracked page = %s, want %s", got, want)
	}
}

func TestCanonicalURL(t *testing.T) {
	tests := []struct{ in, want string }{
		{"HTTPS://WWW.Example.COM:443/A b/?q=1#frag", "https://www.example.com/A%20b/?q=1"},
		{"http://example.com:80", "http://example.com/"},
		{"http://example.com:8080/x", "http://example.com:8080/x"},
		{"https://example.com/a/../b/./c", "https://example.com/b/c"},
		{"https://example.com/?utm_source=x", "https://example.com/?utm_source=x"},
		{"https://b\u00fccher.example/\u00fc", "https://xn--bcher-kva.example/%C3%BC"},
		{"\thttps://example.com/\n", "https://example.com/"},
		{"https://example.com/#", "https://example.com/"},
		{"https://example.com/?page=2&", "https://example.com/?page=2&"},
		{"https://example.com/http%253A%252F%252Fdoc", "https://example.com/http%253A%252F%252Fdoc"},
		{" no address ", "no address"},
		{"", ""},
	}
	for _, tt := range tests {
		got := CanonicalURL(tt.in)
		if got != tt.want {
			t.Errorf("CanonicalURL(%q) = %q, want %q", tt.in, got, tt.want)
		}
		if again := CanonicalURL(got); again != got {
			t.Errorf("CanonicalURL is not stable: %q becomes %q", got, again)
		}
	}
}

func TestResolveURL(t *testing.T) {
	const list = "https://check.example/factchecks/list/?page=2&category=x"
	tests := []struct{ base, ref, want string }{
		{list, "?page=3&", "https://check.example/factchecks/list/?page=3&"},
		{list, "/factchecks/2024/a/", "https://check.example/factchecks/2024/a/"},
		{list, "//cdn.example/x", "https://cdn.example/x"},
		{list, "../b#c", "https://check.example/factchecks/b"},
		{list, "HTTP://Other.example", "http://other.example/"},
		{list, "", list},
		{list, "http://[broken", ""},
		{"no base", "/x", ""},
	}
	for _, tt := range tests {
		if got := ResolveURL(tt.base, tt.ref); got != tt.want {
			t.Errorf("ResolveURL(%q, %q) = %q, want %q", tt.base, tt.ref, got, tt.want)
		}
	}
}

func TestHostAndDomain(t *testing.T) {
	tests := []struct{ in, host, domain string }{
		{"https://News.Example.co.uk:8080/x", "news.example.co.uk", "example.co.uk"},
		{"https://old.reddit.com/r/x", "old.reddit.com", "reddit.com"},
		{"http://127.0.0.1:9/x", "127.0.0.1", "127.0.0.1"},
		{"http://[::1]/x", "[::1]", "[::1]"},
		{"http://localhost/", "localhost", "localhost"},
		{"https://someone.github.io/", "someone.github.io", "someone.github.io"},
		{"nonsense", "", ""},
	}
	for _, tt := range tests {
		host := Host(tt.in)
		if host != tt.host {
			t.Errorf("Host(%q) = %q, want %q", tt.in, host, tt.host)
		}
		if got := RegistrableDomain(host); got != tt.domain {
			t.Errorf("RegistrableDomain(%q) = %q, want %q", host, got, tt.domain)
		}
	}
}

func TestRedditFullname(t *testing.T) {
	tests := []struct{ in, want string }{
		{"https://www.reddit.com/r/politics/comments/18r2fkv/some_title/", "t3_18r2fkv"},
		{"https://www.reddit.com/r/politics/comments/18r2fkv", "t3_18r2fkv"},
		{"https://www.reddit.com/comments/18r2fkv", "t3_18r2fkv"},
		{"https://old.reddit.com/r/politics/comments/18R2FKV/Title?sort=top#x", "t3_18r2fkv"},
		{"http://np.reddit.com/r/politics/comments/18r2fkv/t/", "t3_18r2fkv"},
		{"https://reddit.com/r/politics/comments/18r2fkv/t/?utm_source=share", "t3_18r2fkv"},
		{"https://amp.reddit.com/r/politics/comments/18r2fkv/t/", "t3_18r2fkv"},
		{"https://www.reddit.com/user/someone/comments/18r2fkv/t/", "t3_18r2fkv"},
		{"https://www.reddit.com/u/someone/comments/18r2fkv/t/", "t3_18r2fkv"},
		{"https://www.reddit.com/gallery/18r2fkv", "t3_18r2fkv"},
		{"https://redd.it/18r2fkv", "t3_18r2fkv"},
		{"https://www.reddit.com/r/politics/comments/18r2fkv.json", ""},

		{"https://www.reddit.com/r/politics/comments/18r2fkv/title/kezabcd/", "t1_kezabcd"},
		{"https://www.reddit.com/r/politics/comments/18r2fkv/title/kezabcd/?context=3", "t1_kezabcd"},
		{"https://www.reddit.com/r/politics/comments/18r2fkv/comment/kezabcd/", "t1_kezabcd"},
		{"https://www.reddit.com/r/politics/comments/18r2fkv//kezabcd", "t1_kezabcd"},
		{"https://www.reddit.com/comments/18r2fkv/_/kezabcd", "t1_kezabcd"},

		{"https://www.reddit.com/user/someone/", ""},
		{"https://www.reddit.com/user/someone/comments/", ""},
		{"https://www.reddit.com/user/someone/comments/?sort=new", ""},
		{"https://www.reddit.com/r/politics/wiki/index", ""},
		{"https://www.reddit.com/wiki/comments/18r2fkv", ""},
		{"https://www.reddit.com/r/politics/", ""},
		{"https://www.reddit.com/r/comments/", ""},
		{"https://www.reddit.com/", ""},
		{"https://www.reddit.com/r/politics/s/AbCdEf123", ""},
		{"https://redd.it/", ""},
		{"https://i.redd.it/abcdef.jpg", ""},
		{"https://v.redd.it/abcdef", ""},
		{"https://reddit.com.evil.example/r/x/comments/18r2fkv/", ""},
		{"https://notreddit.com/comments/18r2fkv", ""},
		{"nonsense", ""},
		{"", ""},
	}
	for _, tt := range tests {
		got, ok := RedditFullname(tt.in)
		if got != tt.want || ok != (tt.want != "") {
			t.Errorf("RedditFullname(%q) = %q, %v, want %q", tt.in, got, ok, tt.want)
		}
	}
}

// FuzzCanonicalURL holds the glance against the parser.
func FuzzCanonicalURL(f *testing.F) {
	for _, s := range []string{
		"https://check.example/a/b?x=1&y=%20z", "http://a.b/", "https://a.b", "https://a.b/?", "https://a.b/#", "https://a.b/..", "https://a.b/x/.y/",
		"https://1.2/x", "https://a.0x7f/", "https://xn--bcher-kva.example/", "https://a..b/", "https://a-.b/", "https://-a.b/", "https://a.b-/", "https://a.b./",
		"https://a.b/c//d", "https://a.b/'", "https://a.b/x?'", "https://a.b:80/", "https://u@a.b/", "https://A.b/", "https://a.b/%2e%2e/", "https://a.b/\\x", "https://a.b/x?%zz?/",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, prefix := range []string{"", "https://check.example/", "https://check.example/?", "http://"} {
			if got, want := CanonicalURL(prefix+s), parsedURL(prefix+s); got != want {
				t.Errorf("CanonicalURL(%q) = %q, the parser says %q", prefix+s, got, want)
			}
			if got, want := Host(prefix+s), parsedHost(prefix+s); got != want {
				t.Errorf("Host(%q) = %q, the parser says %q", prefix+s, got, want)
			}
		}
	})
}

func BenchmarkCanonicalURL(b *testing.B) {
	const page = "https://www.check.example/factchecks/2023/mar/14/mara-quill/lakeford-bridge-toll-doubled-2022/"
	for _, by := range []struct {
		name string
		of   func(string) string
	}{{"glance", CanonicalURL}, {"parser", parsedURL}} {
		b.Run(by.name, func(b *testing.B) {
			for b.Loop() {
				if by.of(page) != page {
					b.Fatal("changed")
				}
			}
		})
	}
}
