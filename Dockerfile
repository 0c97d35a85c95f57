# Drydock's image: two static binaries, Drydock and the mesh's agent, and the public certificate authorities, run by
# nobody in particular. `make image` builds it. BASE is what it stands on, such as a distroless static image; by default
# nothing at all.
ARG BASE=scratch

FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
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
