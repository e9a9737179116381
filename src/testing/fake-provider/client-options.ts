import type { BuiltInOptions, FakeProvider, OidcOptions } from './fake-provider'

export function oidcOptions<Overrides extends object>(provider: FakeProvider, overrides?: Overrides): OidcOptions & Overrides {
  const { clientId, clientSecret, authorizeUrl, tokenUrl, userinfoUrl, jwksUri, issuer } = provider
  const base = { clientId, clientSecret, authorizeUrl, tokenUrl, userinfoUrl, jwksUri, issuer }
  return { ...base, ...overrides } as OidcOptions & Overrides // spread keeps both shapes
}

export function googleOptions<Overrides extends object>(provider: FakeProvider, overrides?: Overrides): BuiltInOptions & Overrides {
  const { clientId, clientSecret, authorizeUrl, tokenUrl, userinfoUrl, tokeninfoUrl, jwksUri, issuer } = provider
  const base = { clientId, clientSecret, endpoints: { authorizeUrl, tokenUrl, userinfoUrl, tokeninfoUrl, jwksUri, issuer } }
  return { ...base, ...overrides } as BuiltInOptions & Overrides // spread keeps both shapes
}

export function githubOptions<Overrides extends object>(provider: FakeProvider, overrides?: Overrides): BuiltInOptions & Overrides {
  const { clientId, clientSecret, authorizeUrl, tokenUrl, apiUrl } = provider
  const base = { clientId, clientSecret, endpoints: { authorizeUrl, tokenUrl, apiUrl } }
  return { ...base, ...overrides } as BuiltInOptions & Overrides // spread keeps both shapes
}
