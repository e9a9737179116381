import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { describe, expectTypeOf, test } from 'vitest'
import type { AccessTokenClaims, AuthRouter, createGuards, Guards, RequestHeaders, VerifiedCredential } from '../../src'

interface Claims {
  roles: ('editor' | 'admin')[]
  tenant?: string
}

type Verified<Host extends object> = Awaited<ReturnType<Guards<Host>['verify']>>

describe('guards.verify() and guards.verifyToken()', () => {
  test('resolve with the person, the claims and a signal', () => {
    expectTypeOf<keyof VerifiedCredential>().toEqualTypeOf<'userId' | 'claims' | 'sessionId' | 'expiresAt' | 'signal' | 'release'>()
    expectTypeOf<VerifiedCredential['userId']>().toEqualTypeOf<string>()
    expectTypeOf<VerifiedCredential['sessionId']>().toEqualTypeOf<string | null>()
    expectTypeOf<VerifiedCredential['expiresAt']>().toEqualTypeOf<Date>()
    expectTypeOf<VerifiedCredential['signal']>().toEqualTypeOf<AbortSignal>()
    expectTypeOf<VerifiedCredential['release']>().toEqualTypeOf<() => void>()
    expectTypeOf<VerifiedCredential['claims']>().toExtend<AccessTokenClaims>()
    expectTypeOf<ReturnType<AuthRouter['guards']['verifyToken']>>().toEqualTypeOf<Promise<VerifiedCredential>>()
    expectTypeOf<ReturnType<typeof createGuards>['verify']>().toEqualTypeOf<Guards['verify']>()
  })

  test('the claims have the types of the host; in delivery session no credential has them', () => {
    expectTypeOf<Verified<{ claims: Claims }>['claims']['roles']>().toEqualTypeOf<Claims['roles']>()
    expectTypeOf<Verified<{ claims: Claims }>['claims']['sub']>().toEqualTypeOf<string>()
    expectTypeOf<Verified<{ claims: Claims; delivery: 'session' }>['claims']['sub']>().toEqualTypeOf<string>()
    const use = (verified: Verified<{ claims: Claims; delivery: 'session' }>) => {
      // @ts-expect-error a session cookie has no claims of the host
      verified.claims.roles
      // @ts-expect-error nobody may change who it is
      verified.userId = 'someone else'
    }
    expectTypeOf(use).toBeFunction()
  })

  test('take requests, headers of every form, and any token', () => {
    expectTypeOf<IncomingMessage>().toExtend<Parameters<Guards['verify']>[0]>()
    expectTypeOf<IncomingHttpHeaders>().toExtend<RequestHeaders>()
    expectTypeOf<Headers>().toExtend<RequestHeaders>()
    expectTypeOf<Map<string, string>>().toExtend<RequestHeaders>()
    expectTypeOf<Record<string, string | string[]>>().toExtend<RequestHeaders>()
    expectTypeOf<Parameters<Guards['verifyToken']>>().toEqualTypeOf<[token: unknown]>()
    const use = (guards: Guards) => {
      // @ts-expect-error the headers themselves are no request
      guards.verify('authorization: Bearer x')
      // @ts-expect-error a request without headers
      guards.verify({ url: '/socket' })
    }
    expectTypeOf(use).toBeFunction()
  })
})
