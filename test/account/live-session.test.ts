import { describe, expect, test } from 'vitest'
import { createKnexStore } from '../../src'
import { bearerOf, mailsTo, onLocal, openAs, post, resetLink, settled, signedIn } from '../local/people'
import { outcome } from '../mfa/people'
import { userById } from '../social/accounts-at-hand'
import { databases } from '../support/databases'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')

describe('what a signed-in person changes without a fresh session', () => {
  const { start } = onLocal(sqlite)
  type Host = Awaited<ReturnType<typeof start>>
  const rename = (host: Host, headers: Record<string, string>, body: object = {}) =>
    host
      .browser()
      .patch(`${host.prefix}/me`)
      .set(headers)
      .send({ name: 'A new name', ...body })
  const verify = (host: Host, headers: Record<string, string>, body: object = {}) => post(host, '/email-verify/request', body, headers)

  test('an access token whose session has ended changes no profile and requests no verification: 401 INVALID_TOKEN (25.3.5)', async () => {
    const host = await start()
    const person = await signedIn(host)
    await post(host, '/logout', { refresh_token: person.refreshToken }).expect(204)
    expect(outcome(await rename(host, bearerOf(person)))).toBe('INVALID_TOKEN')
    expect(outcome(await verify(host, bearerOf(person)))).toBe('INVALID_TOKEN')
    await settled(host)
    expect([(await userById(host.knex, person.userId)).name, mailsTo(host, person.email)]).toEqual(['There Before', []])

    const live = await openAs(host, person.userId)
    expect(outcome(await rename(host, bearerOf(live)))).toBe(200)
    expect(outcome(await verify(host, bearerOf(live)))).toBe(202)
    expect((await host.mails.next({ kind: 'email_verification', to: person.email })).to).toBe(person.email)
  })

  test('for a token without sid, refresh_token in the body names the session (25.3.5)', async () => {
    const host = await start({ settings: { accessTokenSessionClaims: false } })
    const person = await signedIn(host)
    const named = { refresh_token: person.refreshToken }
    expect([outcome(await rename(host, bearerOf(person))), outcome(await verify(host, bearerOf(person)))]).toEqual(
      Array(2).fill('REAUTHENTICATION_REQUIRED'),
    )
    expect(outcome(await rename(host, bearerOf(person), named))).toBe(200)
    expect(outcome(await verify(host, bearerOf(person), named))).toBe(202)
    await post(host, '/logout', named).expect(204)
    expect([outcome(await rename(host, bearerOf(person), named)), outcome(await verify(host, bearerOf(person), named))]).toEqual(
      Array(2).fill('INVALID_TOKEN'),
    )
  })

  test('without a session table, the token must be newer than the last change of the password (25.3.5)', async () => {
    const knex = (await start()).knex
    const { sessions: _none, ...store } = createKnexStore({ knex })
    const host = await start({ options: { store } })
    const person = await signedIn(host)
    host.clock.advance(2)
    expect(outcome(await rename(host, bearerOf(person)))).toBe(200)
    await post(host, '/password-reset/confirm', { token: await resetLink(host, person.email), new_password: 'nine green bicycles uphill' })
    expect([outcome(await rename(host, bearerOf(person))), outcome(await verify(host, bearerOf(person)))]).toEqual(
      Array(2).fill('INVALID_TOKEN'),
    )
  })
})
