import type { AppleOptions, BuiltInOptions, FakeProvider, OidcOptions } from './fake-provider'
import { appleKeys } from './tokens'

export function oidcOptions<Overrides extends object>(provider: FakeProvider, overrides?: Overrides): OidcOptions & Overrides {
  const { clientId, clientSecret, authorizeUrl, tokenUrl, userinfoUrl, jwksUri, issuer } = provider
  const base = { clientId, clientSecret, authorizeUrl, tokenUrl, userinfoUrl, jwksUri, issuer }
  return { ...base, ...overrides } as OidcOptions & Overrides // the spread has the members of both
}

export function googleOptions<Overrides extends object>(provider: FakeProvider, overrides?: Overrides): BuiltInOptions & Overrides {
  const { clientId, clientSecret, authorizeUrl, tokenUrl, userinfoUrl, tokeninfoUrl, jwksUri, issuer } = provider
  const base = { clientId, clientSecret, endpoints: { authorizeUrl, tokenUrl, userinfoUrl, tokeninfoUrl, jwksUri, issuer } }
  return { ...base, ...overrides } as BuiltInOptions & Overrides // the spread has the members of both
}

export function appleOptions<Overrides extends object>(provider: FakeProvider, overrides?: Overrides): AppleOptions & Overrides {
  const { clientId, authorizeUrl, tokenUrl, jwksUri, issuer } = provider
  const team = { teamId: appleTeam, keyId: 'FAKEKEY001', privateKey: appleKeys().privateKey }
  const base = { clientId, ...team, endpoints: { authorizeUrl, tokenUrl, jwksUri, issuer } }
  return { ...base, ...overrides } as AppleOptions & Overrides // the spread has the members of both
}

export const appleTeam = 'FAKETEAM01'

export function githubOptions<Overrides extends object>(provider: FakeProvider, overrides?: Overrides): BuiltInOptions & Overrides {
  const { clientId, clientSecret, authorizeUrl, tokenUrl, apiUrl } = provider
  const base = { clientId, clientSecret, endpoints: { authorizeUrl, tokenUrl, apiUrl } }
  return { ...base, ...overrides } as BuiltInOptions & Overrides // the spread has the members of both
}
