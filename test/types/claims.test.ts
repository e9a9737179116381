import type { Request } from 'express'
import { describe, expectTypeOf, test } from 'vitest'
import {
  type AccessTokenClaims,
  type AuthRouter,
  type AuthRouterOptions,
  createGuards,
  findAuth,
  getAuth,
  type HostClaims,
  type HostTypes,
  type LoginResult,
  type SessionLoginResult,
} from '../../src'

interface Claims {
  roles: ('editor' | 'admin')[]
  tenant: string
  plan?: 'free' | 'pro'
}

type Typed = AuthRouter<{ claims: Claims }>
type Hook = NonNullable<AuthRouterOptions<{ claims: Claims }>['accessTokenClaims']>

declare const req: Request

describe('createAuthRouter<{ claims }>', () => {
  test('types what accessTokenClaims returns', () => {
    expectTypeOf<Awaited<ReturnType<Hook>>>().toEqualTypeOf<Claims | undefined>()
    expectTypeOf<Parameters<Hook>[1]['amr']>().toEqualTypeOf<AccessTokenClaims['amr']>()
    // @ts-expect-error a role that does not exist
    const wrong: Hook = () => ({ roles: ['owner'], tenant: 'acme' })
    expectTypeOf(wrong).toBeFunction()
  })

  test('types the user by the host’s fields', () => {
    type WithFields = NonNullable<AuthRouterOptions<{ fields: { firstName: string } }>['accessTokenClaims']>
    expectTypeOf<Parameters<WithFields>[0]['fields']['firstName']>().toEqualTypeOf<string>()
  })

  test('types the guards: names, values, functions and roles', () => {
    const use = ({ guards }: Typed) => {
      guards.requireRole('editor', 'admin')
      guards.requireClaim('tenant', 'acme')
      guards.requireClaim('plan', 'pro')
      guards.requireClaim('roles', (roles) => roles.includes('admin'))
      guards.requireClaim('client_id', 'spa')
      // @ts-expect-error there is no such role
      guards.requireRole('owner')
      // @ts-expect-error at least one role
      guards.requireRole()
      // @ts-expect-error there is no such claim
      guards.requireClaim('tenent', 'acme')
      // @ts-expect-error there is no such plan
      guards.requireClaim('plan', 'gold')
      // @ts-expect-error a list is no scalar
      guards.requireClaim('roles', ['admin'])
    }
    expectTypeOf(use).toBeFunction()
  })

  test('createGuards<{ claims }> types them as well', () => {
    const use = () => createGuards<{ claims: Claims }>({ settings: {} }).requireClaim('tenant', (tenant) => tenant.startsWith('a'))
    expectTypeOf(use).toBeFunction()
  })
})

describe('createAuthRouter<{ delivery }>', () => {
  type Verb<Host extends HostTypes> = Awaited<ReturnType<AuthRouter<Host>['service']['logIn']>>

  test('types what the login verbs of the service return', () => {
    expectTypeOf<Verb<{ delivery: 'session' }>>().toEqualTypeOf<SessionLoginResult>()
    expectTypeOf<Verb<HostTypes>>().toEqualTypeOf<LoginResult>()
  })
})

describe('getAuth<Claims>', () => {
  test('and findAuth return them beside ours', () => {
    const read = () => [getAuth<Claims>(req), findAuth<Claims>(req)] as const
    expectTypeOf<ReturnType<typeof read>[0]['tenant']>().toEqualTypeOf<string>()
    expectTypeOf<ReturnType<typeof read>[0]['sub']>().toEqualTypeOf<string>()
    expectTypeOf<NonNullable<ReturnType<typeof read>[1]>['plan']>().toEqualTypeOf<'free' | 'pro' | undefined>()
  })

  test('without them it returns ours alone', () => {
    const read = () => getAuth(req)
    expectTypeOf<keyof ReturnType<typeof read>>().toEqualTypeOf<keyof AccessTokenClaims>()
  })
})

test('without types a host may return any JSON, and ask for any claim', () => {
  const hook: NonNullable<AuthRouterOptions['accessTokenClaims']> = () => ({ roles: ['a'], deep: { x: [1, null] }, absent: undefined })
  const use = ({ guards }: AuthRouter) => guards.requireClaim('whatever', (value) => value === 1)
  expectTypeOf(use).toBeFunction()
  expectTypeOf(hook).toBeFunction()
  // @ts-expect-error a date is no JSON
  const wrong: typeof hook = () => ({ since: new Date() })
  expectTypeOf(wrong).toBeFunction()
  expectTypeOf<HostClaims>().toExtend<object>()
})
