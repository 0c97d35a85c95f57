# Drydock's image: two static binaries, Drydock and the mesh's agent, and the public certificate authorities, run by
# nobody in particular. `make image` builds it. BASE is what it stands on, such as a distroless static image; by default
# nothing at all. What you name as BASE, name by its digest: a tag is whatever its registry says today.
ARG BASE=scratch
# The compiler's image, which leaves nothing in the result but the binaries and the certificate authorities. The tag is the
# version in go.mod. A build that must be the same every time names a digest: make image GO_IMAGE=golang@sha256:…
ARG GO_IMAGE=golang:1.26.8

FROM ${GO_IMAGE} AS build
WORKDIR /src
COPY go.mod go.sum go.work go.work.sum ./
COPY internal/conntrack internal/conntrack
RUN go mod download
COPY . .
# make image stamps the version here.
ARG LDFLAGS="-s -w"
RUN CGO_ENABLED=0 go build -trimpath -tags nomsgpack -ldflags "$LDFLAGS" -o /drydock ./cmd/drydock
RUN CGO_ENABLED=0 go build -trimpath -tags nomsgpack -ldflags "$LDFLAGS" -o /drydock-agent ./cmd/drydock-agent

FROM ${BASE}
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /drydock /drydock-agent /
# By number, so that a cluster can see that it is not root.
USER 65532:65532
ENTRYPOINT ["/drydock"]
