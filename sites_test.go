package assay

import (
	"testing"
	"time"

	"assay/scrapers"

	"github.com/google/go-cmp/cmp"
)

func TestHostDelays(t *testing.T) {
	config := func(delay time.Duration, base string, named map[string]time.Duration) Config {
		var c Config
		c.Runtime.Delay, c.Runtime.HostDelay = delay, named
		c.Recipe.Sites = append(c.Recipe.Sites, SiteRecipe{Name: "snopes", Base: base})
		return c
	}
	tests := []struct {
		name string
		in   Config
		want map[string]time.Duration
	}{
		{"the site asks for more", config(time.Second, "", nil), map[string]time.Duration{"www.snopes.com": 3 * time.Second, "snopes.com": 3 * time.Second}},
		{"the general gap is longer", config(time.Minute, "", nil), nil},
		{"no gap at all", config(0, "", nil), nil},
		{"a mirror", config(time.Second, "http://mirror.example", nil), nil},
		{"the configuration names the domain", config(time.Second, "", map[string]time.Duration{"snopes.com": time.Hour}), map[string]time.Duration{"snopes.com": time.Hour}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, hostDelays(tt.in)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestSiteHosts(t *testing.T) {
	site := scrapers.Site{Host: "a.example", Hosts: []string{"b.example"}}
	if diff := cmp.Diff([]string{"a.example", "b.example"}, siteHosts(site, "")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"mirror.example"}, siteHosts(site, "http://mirror.example:8080")); diff != "" {
		t.Error(diff)
	}
}
