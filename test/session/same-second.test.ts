import { describe, expect, test } from 'vitest'
import { createKnexStore } from '../../src'
import { bearerOf, type LocalHost, otherPassword, password, post, resetLink, signedIn } from '../local/people'
import { mfaSettings, outcome } from '../mfa/people'
import { onPasskeys } from '../passkeys/people'
import { databases } from '../support/databases'

/** The routes that add a way to sign in refuse a token from before a change of the credentials. */
const adding = (host: LocalHost, who: { token: string }) => ({
  enroll: () => post(host, '/mfa/enroll', {}, bearerOf(who)),
  link: () => post(host, '/oauth/corp/link', {}, bearerOf(who)),
  async register() {
    const { body } = await post(host, '/passkeys/register/options', {}, bearerOf(who))
    return post(host, '/passkeys/register', { credential: {}, challenge_token: body.challenge_token ?? '' }, bearerOf(who))
  },
})

async function outcomes(host: LocalHost, who: { token: string }) {
  const routes = adding(host, who)
  return { enroll: outcome(await routes.enroll()), link: outcome(await routes.link()), register: outcome(await routes.register()) }
}
const works = { enroll: 200, link: 200, register: 'PASSKEY_INVALID' }
const refused = { enroll: 'INVALID_TOKEN', link: 'INVALID_TOKEN' }

async function logIn(host: LocalHost, email: string, known: string) {
  const { body } = await post(host, '/login', { email, password: known }).expect(200)
  return { token: body.access_token, refreshToken: body.refresh_token }
}

const wholeSeconds: Readonly<Record<string, readonly string[]>> = {
  postgres: [
    'alter table auth_users alter column password_set_at type timestamptz(0), alter column email_verified_at type timestamptz(0)',
    'alter table auth_sessions alter column created_at type timestamptz(0)',
  ],
  mariadb: [
    'alter table auth_users modify password_set_at datetime(0) null, modify email_verified_at datetime(0) null',
    'alter table auth_sessions modify created_at datetime(0) not null',
  ],
}

describe.each(await databases())('a token of the second of a change (25.4.7), on $name', (database) => {
  const { start } = onPasskeys(database)
  const settings = { ...mfaSettings, timingGridMilliseconds: 0 }

  async function afterReset(host: LocalHost, offsetMs: number) {
    const person = await signedIn(host)
    host.clock.advance(60 + offsetMs / 1000)
    await post(host, '/password-reset/confirm', { token: await resetLink(host, person.email), new_password: otherPassword }).expect(200)
    return person
  }

  test.each([0, 300, 700])(
    'after a reset at %i ms of a second, a token of a login in this second works at every route (25.4.7)',
    async (offsetMs) => {
      const host = await start({ settings })
      const person = await afterReset(host, offsetMs)
      host.clock.advance(0.1)
      expect(await outcomes(host, await logIn(host, person.email, otherPassword))).toEqual(works)
      expect((await outcomes(host, person)).enroll).toBe('INVALID_TOKEN')
    },
  )

  test('after a password change in the kept session, its token from before the change adds no way to sign in (25.4.7)', async () => {
    const host = await start({ settings })
    const person = await signedIn(host)
    for (const wait of [0.4, 60.3]) {
      host.clock.advance(wait)
      const [old, next] = wait === 0.4 ? [password, otherPassword] : [otherPassword, password]
      await post(host, '/password-change', { current_password: old, new_password: next }, bearerOf(person)).expect(204)
      expect(await outcomes(host, person)).toMatchObject(refused)
    }
    host.clock.advance(1)
    const { body } = await post(host, '/refresh', { refresh_token: person.refreshToken }).expect(200)
    expect(await outcomes(host, { token: body.access_token })).toEqual(works)
  })

  test('without a session table, a token of the second of a reset is refused, because nothing tells it from an older one (25.4.7)', async () => {
    const { sessions: _none, ...store } = createKnexStore({ knex: (await start()).knex })
    const host = await start({ settings, options: { store } })
    const person = await afterReset(host, 300)
    expect((await outcomes(host, await logIn(host, person.email, otherPassword))).enroll).toBe('INVALID_TOKEN')
    host.clock.advance(1)
    expect((await outcomes(host, await logIn(host, person.email, otherPassword))).enroll).toBe(200)
  })

  const statements = wholeSeconds[database.name]
  if (!statements) return // SQLite keeps whole seconds in no column of ours
  test('columns of whole seconds, cut or rounded, refuse no login after a reset (25.4.7)', async () => {
    const host = await start({ settings })
    for (const statement of statements) await host.knex.raw(statement)
    for (const offsetMs of [100, 450, 550, 850]) {
      host.clock.advance(1 - (host.clock.now().getTime() % 1000) / 1000)
      const person = await afterReset(host, offsetMs)
      host.clock.advance(0.02)
      expect([offsetMs, await outcomes(host, await logIn(host, person.email, otherPassword))]).toEqual([offsetMs, works])
    }
  })
})
