import { describe, expect, test } from 'vitest'
import { createKnexStore } from '../../src'
import { loginAs, openSessionAs } from '../../src/testing'
import { bearerOf, type LocalHost, newAddress, onLocal, post, signedIn, tokenRows } from '../local/people'
import { addUser } from '../social/accounts-at-hand'
import { baseUrl, signIn } from '../support/app'
import { databases } from '../support/databases'
import { recordQueries } from '../support/record-queries'

const list = (host: LocalHost, person: { token: string }) => host.browser().get(`${host.prefix}/sessions`).set(bearerOf(person))
const end = (host: LocalHost, person: { token: string }, id: string) =>
  host.browser().delete(`${host.prefix}/sessions/${id}`).set(bearerOf(person))

for (const database of await databases()) {
  describe(database.name, () => {
    const { start } = onLocal(database)

    test('15.3: the list shows every living session of both kinds, the one used last first, and nothing that opens one', async () => {
      const host = await start()
      const { id } = await addUser(host.knex, { email: newAddress() })
      const phone = await loginAs(host.auth, { id })
      host.clock.advance(60)
      const browser = await openSessionAs(host.auth, { id })
      host.clock.advance(60)
      const laptop = await loginAs(host.auth, { id })
      host.clock.advance(60)
      const { body: refreshed } = await post(host, '/refresh', { refresh_token: phone.refreshToken }).expect(200)

      const { body, text } = await list(host, { token: refreshed.access_token }).expect(200)
      expect(body.map(({ kind }: { kind: string }) => kind)).toEqual(['tokens', 'tokens', 'session'])
      expect(body.map(({ is_current }: { is_current: boolean }) => is_current)).toEqual([true, false, false])
      expect(body[2].id).toBe(browser.sessionId)
      expect(Object.keys(body[0]).sort()).toEqual(
        ['id', 'kind', 'created_at', 'last_seen_at', 'expires_at', 'ip', 'user_agent', 'amr', 'provider', 'is_current'].sort(),
      )
      expect(new Date(body[0].last_seen_at).getTime() - new Date(body[0].created_at).getTime()).toBe(180_000)
      for (const secret of [phone.refreshToken, laptop.refreshToken, refreshed.refresh_token]) expect(text).not.toContain(secret)
      expect(text).not.toMatch(/hash/i)
    })

    test('a session says from where it was opened, and by which provider', async () => {
      const host = await start()
      const { body } = await signIn(host)
      const { body: sessions } = await list(host, { token: body.access_token }).expect(200)
      expect(sessions).toHaveLength(1)
      expect(sessions[0]).toMatchObject({ kind: 'tokens', provider: 'corp', amr: ['ext'], is_current: true })
      expect(sessions[0].ip).toMatch(/127\.0\.0\.1/)
    })

    test('one is ended by its id: its refresh token is dead, and the others go on', async () => {
      const host = await start()
      const ana = await signedIn(host)
      const phone = await loginAs(host.auth, { id: ana.userId })
      const events: unknown[] = []
      host.auth.events.on('session.revoked', (event) => events.push(event))
      const { body } = await list(host, ana)
      const other = body.find((session: { is_current: boolean }) => !session.is_current)

      await end(host, ana, other.id).expect(204)

      expect((await post(host, '/refresh', { refresh_token: phone.refreshToken })).status).toBe(401)
      expect((await list(host, ana).expect(200)).body).toHaveLength(1)
      expect((await end(host, ana, other.id)).body.code).toBe('NOT_FOUND')
      expect(events).toEqual([{ userId: ana.userId, count: 1 }])
    })

    test('the current one too: afterwards its access token lists nothing', async () => {
      const host = await start()
      const ana = await signedIn(host)
      const { body } = await list(host, ana)
      await end(host, ana, body[0].id).expect(204)
      expect((await list(host, ana)).body.code).toBe('INVALID_TOKEN')
      expect((await end(host, ana, body[0].id)).body.code).toBe('INVALID_TOKEN')
    })

    test("another person's session, one that has ended and what is no id are one refusal, and end nothing", async () => {
      const host = await start()
      const [ana, bob] = [await signedIn(host), await signedIn(host)]
      const { body: ofBob } = await list(host, bob)
      for (const id of [ofBob[0].id, '00000000-0000-4000-8000-000000000000', 'no-id', '%00', "'--"]) {
        const answer = await end(host, ana, encodeURIComponent(id))
        expect([id, answer.status, answer.body.code]).toEqual([id, 404, 'NOT_FOUND'])
      }
      expect((await list(host, bob)).body).toHaveLength(1)
    })

    test('revoke-others ends all but this one, and what was begun in them: a change of the address', async () => {
      const host = await start()
      const ana = await signedIn(host)
      const [phone, browser] = [await loginAs(host.auth, { id: ana.userId }), await openSessionAs(host.auth, { id: ana.userId })]
      await post(host, '/email-change/request', { new_email: 'next@example.test' }, bearerOf({ token: phone.accessToken })).expect(202)
      await host.mails.next({ kind: 'email_change', to: 'next@example.test' })

      await post(host, '/sessions/revoke-others', {}, bearerOf(ana)).expect(204)

      const { body } = await list(host, ana).expect(200)
      expect(body.map(({ is_current }: { is_current: boolean }) => is_current)).toEqual([true])
      expect((await post(host, '/refresh', { refresh_token: phone.refreshToken })).status).toBe(401)
      expect((await host.browser().get('/auth/session/me').set(browser.cookies)).status).toBe(401)
      const open = (await tokenRows(host, ana.userId)).filter(({ purpose, isUsed }) => purpose === 'EMAIL_CHANGE' && !isUsed)
      expect(open).toEqual([])
    })

    test('the list costs one query on the sessions beside the look at its own', async () => {
      const host = await start()
      const ana = await signedIn(host)
      const recording = recordQueries(host.knex)
      await list(host, ana).expect(200)
      expect(recording.stop()).toHaveLength(2)
    })
  })
}

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')
const { start } = onLocal(sqlite)

describe('the other deliveries', () => {
  test.each(['cookie', 'both'] as const)(
    '%s: by the cookies alone, from this site alone; ending the current one clears them',
    async (tokenDelivery) => {
      const host = await start({ settings: { tokenDelivery, oauthSuccessRedirect: `${baseUrl}/in` } })
      const { id } = await addUser(host.knex, { email: newAddress() })
      const { accessToken } = await loginAs(host.auth, { id })
      const browser = host.browser()
      const cookie = { Cookie: `access_token=${accessToken}` }
      const { body } = await browser.get(`${host.prefix}/sessions`).set(cookie).expect(200)
      const path = `${host.prefix}/sessions/${body[0].id}`

      const foreign = await browser.delete(path).set({ ...cookie, Origin: 'https://evil.example' })
      expect([foreign.status, foreign.body.code]).toEqual([403, 'CSRF_VALIDATION_FAILED'])
      const others = await browser.post(`${host.prefix}/sessions/revoke-others`).set({ ...cookie, Origin: 'https://evil.example' })
      expect(others.body.code).toBe('CSRF_VALIDATION_FAILED')

      const ended = await browser.delete(path).set({ ...cookie, Origin: baseUrl })
      expect(ended.status).toBe(204)
      expect([ended.headers['set-cookie']].flat().map((line) => String(line).split(';')[0])).toEqual([
        'access_token=',
        'refresh_token=',
        'auth_hint=',
      ])
    },
  )

  test("a token in the header that ends its own session leaves another account's cookies alone", async () => {
    const host = await start({ settings: { tokenDelivery: 'both', oauthSuccessRedirect: `${baseUrl}/in` } })
    const [ana, bob] = [await signedIn(host), await signedIn(host)]
    const ofBob = await loginAs(host.auth, { id: bob.userId })
    const { body } = await list(host, ana).expect(200)
    const cookies = { Cookie: `access_token=${ofBob.accessToken}; refresh_token=${ofBob.refreshToken}`, Origin: baseUrl }

    const ended = await end(host, ana, body[0].id).set(cookies).expect(204)

    expect(ended.headers['set-cookie']).toBeUndefined()
    expect((await list(host, ana)).status).toBe(401)
  })

  test('a store without sessions has no such routes', async () => {
    const { knex } = await start()
    const host = await start({ options: { store: createKnexStore({ knex, sessions: false }) } })
    const ana = await signedIn(host)
    expect((await list(host, ana)).status).toBe(404)
  })
})
