import { describe, expect, test } from 'vitest'
import { createKnexStore, errors, type OAuthUser } from '../src'
import { signIn } from './support/app'
import { appPerTest } from './support/app-per-test'
import { databases } from './support/databases'

const profile: OAuthUser = {
  provider: 'corp',
  subject: 'S-1',
  email: 'Ana@Example.test',
  emailVerified: true,
  name: 'Ana',
  picture: null,
  raw: {},
}
const settled = () => new Promise((resolve) => setImmediate(resolve))

describe.each(await databases())('on $name', (database) => {
  const start = appPerTest(database)

  test('the operations of the routes, without HTTP', async () => {
    const { auth, knex } = await start()

    const login = await auth.service.logInWithIdentity(profile)
    if (login.kind !== 'session') throw new Error('no second factor was enrolled')
    const refreshed = await auth.service.refresh(login.refreshToken)
    if (refreshed.kind !== 'session') throw new Error('a refresh never challenges')

    expect(login).toEqual({
      kind: 'session',
      userId: expect.any(String),
      amr: ['ext'],
      accessToken: expect.any(String),
      refreshToken: expect.any(String),
      refreshTokenExpiresAt: expect.any(Date),
    })
    expect(refreshed).toMatchObject({ userId: login.userId, amr: ['ext'] })
    expect(await auth.service.listIdentities(login.userId)).toMatchObject([{ provider: 'corp', subject: 'S-1', email: 'ana@example.test' }])
    await auth.service.unlinkIdentity(login.userId, 'corp')
    expect(await auth.service.listIdentities(login.userId)).toEqual([])
    await auth.service.logOut(refreshed.refreshToken)
    await expect(auth.service.refresh(refreshed.refreshToken)).rejects.toThrow(errors.InvalidTokenError)
    expect(
      await knex('auth_users')
        .count({ count: '*' })
        .first()
        .then((row) => Number(row?.count)),
    ).toBe(1)
  })

  test('what it issues is what the routes take, and the other way round', async () => {
    const mounted = await start()
    const login = await mounted.auth.service.logInWithIdentity(profile)
    if (login.kind !== 'session') throw new Error('no second factor was enrolled')
    const browser = mounted.browser()

    expect((await browser.get('/auth/me').set('Authorization', `Bearer ${login.accessToken}`)).body.id).toBe(login.userId)
    const byRoute = await browser.post('/auth/refresh').send({ refresh_token: login.refreshToken })
    expect((await mounted.auth.service.refresh(byRoute.body.refresh_token)).userId).toBe(login.userId)
  })

  test('it throws the errors that the routes answer with', async () => {
    const { auth, knex } = await start()
    const { userId } = await auth.service.logInWithIdentity(profile)

    await expect(auth.service.refresh('unknown')).rejects.toThrow(errors.InvalidTokenError)
    await expect(auth.service.unlinkIdentity(userId, 'other')).rejects.toThrow(errors.OAuthAccountNotLinkedError)
    await expect(auth.service.logInWithIdentity({ ...profile, subject: 'S-2', provider: 'other' })).rejects.toThrow(
      errors.OAuthEmailTakenError,
    )
    await expect(auth.service.logInWithIdentity({ ...profile, subject: 'S-2', email: null })).rejects.toThrow(errors.OAuthEmailMissingError)
    await expect(auth.service.logOut('unknown')).resolves.toBeUndefined()
    await knex('auth_users').update({ is_active: false })
    await expect(auth.service.logInWithIdentity(profile)).rejects.toThrow(errors.OAuthAccountInactiveError)
  })

  test('using(store.using(trx)): the host’s rollback undoes it, with the host’s own row', async () => {
    const { auth, knex } = await start()
    const store = createKnexStore({ knex })
    await knex.schema.createTable('orders', (table) => void table.string('user_id'))

    const work = knex.transaction(async (trx) => {
      const { userId } = await auth.service.using(store.using(trx)).logInWithIdentity(profile)
      await trx('orders').insert({ user_id: userId })
      expect(await trx('auth_users')).toHaveLength(1)
      throw new Error('the host changed its mind')
    })

    await expect(work).rejects.toThrow('the host changed its mind')
    for (const table of ['orders', 'auth_users', 'auth_identities', 'auth_sessions']) expect(await knex(table), table).toEqual([])
  })

  test('using(store.using(trx)): the host’s commit keeps it', async () => {
    const { auth, knex } = await start()
    const store = createKnexStore({ knex })

    const login = await knex.transaction((trx) => auth.service.using(store.using(trx)).logInWithIdentity(profile))

    if (login.kind !== 'session') throw new Error('no second factor was enrolled')
    expect(await knex('auth_users').select('email')).toEqual([{ email: 'ana@example.test' }])
    expect((await auth.service.refresh(login.refreshToken)).userId).toBe(login.userId)
  })

  test('a refresh that the host rolls back leaves the token unspent', async () => {
    const mounted = await start()
    const { auth, knex } = mounted
    const store = createKnexStore({ knex })
    const { refresh_token } = (await signIn(mounted)).body as { refresh_token: string }

    await knex
      .transaction(async (trx) => {
        await auth.service.using(store.using(trx)).refresh(refresh_token)
        throw new Error('the host changed its mind')
      })
      .catch(() => undefined)

    expect((await auth.service.refresh(refresh_token)).kind).toBe('session')
  })

  test('the service outside the host’s transaction, and its events, are the same as before', async () => {
    const { auth, knex } = await start()
    const store = createKnexStore({ knex })
    const told: string[] = []
    auth.events.on('login', ({ userId }) => told.push(userId))

    const inside = await knex.transaction((trx) => auth.service.using(store.using(trx)).logInWithIdentity(profile))
    const outside = await auth.service.logInWithIdentity(profile)
    await settled()

    expect(told).toEqual([inside.userId, outside.userId])
  })
})
