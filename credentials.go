package assay

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// secretParameter matches the names under which addresses carry a key, a password or a signature.
var secretParameter = regexp.MustCompile(`(?i)(^|[-_.]|api|access|auth|client|subscription)(key|token|secret|sig|signature|password|passwd|pass|pw|pwd|auth|authorization|credential|code)$`)

// credential says what secret an address carries, without repeating it; "" for none.
func credential(address string) string {
	rest := address
	if _, after, ok := strings.Cut(rest, "//"); ok {
		rest = after
	}
	authority := rest
	if i := strings.IndexAny(authority, `/?#\`); i >= 0 {
		authority = authority[:i]
	}
	_, err := url.Parse(address)
	if strings.Contains(authority, "@") || err != nil && strings.Contains(rest, "@") {
		return "a user name or password"
	}
	_, query, _ := strings.Cut(rest, "?")
	for _, p := range strings.FieldsFunc(query, func(r rune) bool { return strings.ContainsRune("&;#?", r) }) {
		name, _, _ := strings.Cut(p, "=")
		if plain, err := url.QueryUnescape(name); err == nil {
			name = plain
		}
		if secretParameter.MatchString(name) {
			return "a key (its parameter " + name + ")"
		}
	}
	return ""
}

// contactCredential is credential of a contact, which may hold mail addresses and pages among words.
func contactCredential(contact string) string {
	for _, word := range strings.Fields(contact) {
		if strings.Contains(word, "://") {
			if what := credential(word); what != "" {
				return what
			}
			continue
		}
		local, _, mail := strings.Cut(word, "@")
		before, _, colon := strings.Cut(strings.TrimLeft(local, "(<["), ":")
		if mail && colon && !mailWord.MatchString(before) {
			return "a user name or password"
		}
	}
	return ""
}

var mailWord = regexp.MustCompile(`(?i)^(mailto|e-?mail|contact)$`)

// checkCredentials refuses addresses that carry a secret, used or not: assay config show, archives and, of a
// recipe, releases show them. It does not repeat the secret.
func (c *Config) checkCredentials(bad func(key, format string, args ...any)) {
	const (
		keyEnv    = "keys stay in the environment (key_env names the variable)"
		redditEnv = "credentials stay in the environment (client_id_env and client_secret_env name the variables)"
		proxy     = "this interface is asked without credentials; if yours wants some, have a proxy on your side add them from its environment"
		download  = "have a program that takes it from the environment download the file, and import that (assay import claims-table)"
	)
	check := func(key, address, hint string) {
		if what := credential(address); what != "" {
			bad(key, "it carries %s, which would be shown; %s", what, hint)
		}
	}
	rt := c.Runtime
	for name, e := range rt.Endpoints {
		check("runtime.endpoints."+name+".base_url", e.BaseURL, keyEnv)
	}
	for name, at := range rt.Search {
		check("runtime.search."+name+".base", at.Base, keyEnv)
	}
	for i, f := range c.Recipe.Feeds {
		check("recipe.feeds["+strconv.Itoa(i)+"].url", f.URL, download)
	}
	check("runtime.fact_check_tools.base", rt.FactCheckTools.Base, keyEnv)
	check("runtime.reddit.base", rt.Reddit.Base, redditEnv)
	check("runtime.reddit.token_url", rt.Reddit.TokenURL, redditEnv)
	check("runtime.arctic_shift.base", rt.ArcticShift.Base, proxy)
	check("runtime.searxng.base", rt.SearXNG.Base, proxy)
	if what := contactCredential(rt.Contact); what != "" {
		bad("runtime.contact", "it carries %s, which every site that is asked would see; a contact is a mail address or a page, and keys stay in the environment", what)
	}
}
