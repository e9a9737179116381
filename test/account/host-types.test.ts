import { describe, expectTypeOf, test } from 'vitest'
import type { AuthRouter, AuthRouterOptions, createAuthRouter, HostTransaction, PublicUser, UserRecord } from '../../src'

interface Fields {
  firstName: string
  plan: 'free' | 'pro'
}

type Typed = AuthRouter<{ fields: Fields }>
type Service = Typed['service']

describe('createAuthRouter<{ fields }>', () => {
  test('types the fields of the guards, of the service and of onSignup', () => {
    expectTypeOf<ReturnType<Typed['guards']['getUser']>['fields']>().toEqualTypeOf<Readonly<Fields>>()
    expectTypeOf<Awaited<ReturnType<Service['signUp']>>[0]['fields']>().toEqualTypeOf<Readonly<Fields>>()
    expectTypeOf<Awaited<ReturnType<Service['updateProfile']>>['fields']>().toEqualTypeOf<Readonly<Fields>>()
    expectTypeOf<NonNullable<Awaited<ReturnType<Service['findUser']>>>['fields']>().toEqualTypeOf<Readonly<Fields>>()
    expectTypeOf<Awaited<ReturnType<Service['listUsers']>>['items'][number]['fields']>().toEqualTypeOf<Readonly<Fields>>()
    expectTypeOf<NonNullable<Awaited<ReturnType<Service['findSession']>>>['user']['fields']>().toEqualTypeOf<Readonly<Fields>>()
    expectTypeOf<ReturnType<Service['using']>>().toEqualTypeOf<Service>()
    type OnSignup = NonNullable<NonNullable<AuthRouterOptions<{ fields: Fields }>['signup']>['onSignup']>
    expectTypeOf<Parameters<OnSignup>[0]['fields']>().toEqualTypeOf<Readonly<Fields>>()
    expectTypeOf<Parameters<OnSignup>[3]['trx']>().toEqualTypeOf<HostTransaction | null>()
  })

  test('a misspelt field is a compile error', () => {
    const read = (auth: Typed, req: Parameters<Typed['guards']['getUser']>[0]) => {
      // @ts-expect-error there is no such field
      auth.guards.getUser(req).fields.firstname
    }
    expectTypeOf(read).toBeFunction()
  })

  test('without it, records are what they were, and fields are unknown values', () => {
    expectTypeOf<ReturnType<typeof createAuthRouter>>().toEqualTypeOf<AuthRouter>()
    expectTypeOf<ReturnType<AuthRouter['guards']['getUser']>>().toEqualTypeOf<PublicUser>()
    expectTypeOf<Awaited<ReturnType<AuthRouter['service']['signUp']>>[0]>().toEqualTypeOf<UserRecord>()
    expectTypeOf<UserRecord['fields']>().toEqualTypeOf<Readonly<Record<string, unknown>> | undefined>()
  })
})
