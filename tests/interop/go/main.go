// franz-go's client against a registry with TLS: arguments are its URL, a file with the authority that signed its
// certificate, and user:password or a token.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log"
	"os"
	"strings"

	"github.com/twmb/franz-go/pkg/sr"
)

func connect(credentials ...sr.ClientOpt) *sr.Client {
	pem, err := os.ReadFile(os.Args[2])
	check(err)
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(pem)
	options := []sr.ClientOpt{sr.URLs(os.Args[1]), sr.DialTLSConfig(&tls.Config{RootCAs: authorities})}
	client, err := sr.NewClient(append(options, credentials...)...)
	check(err)
	return client
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	ctx := context.Background()
	credentials := sr.BearerToken(os.Args[3])
	if user, password, isPair := strings.Cut(os.Args[3], ":"); isPair {
		credentials = sr.BasicAuth(user, password)
	}
	made, err := connect(credentials).CreateSchema(ctx, "franz-value", sr.Schema{Schema: `{"type": "string"}`})
	check(err)
	if made.Version != 1 {
		log.Fatalf("version %d", made.Version)
	}
	var refused *sr.ResponseError
	_, err = connect(sr.BasicAuth("eve", "guess")).Subjects(ctx)
	if !errors.As(err, &refused) || refused.StatusCode != 401 {
		log.Fatalf("a wrong password: %v", err)
	}
}
