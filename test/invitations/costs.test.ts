import { describe, expect, test } from 'vitest'
import { newAddress, password, post, signedIn } from '../local/people'
import { begin, callBack, newPerson } from '../social/redirect-steps'
import { databases } from '../support/databases'
import { tokenOf } from '../support/mailbox'
import { recordQueries } from '../support/record-queries'
import { everyWay, type InvitingHost, invite, inviteByMail, onInvitations, unhurried, usesOf } from './people'

for (const database of await databases()) {
  describe(`what an invitation costs on ${database.name}`, () => {
    const { start } = onInvitations(database)

    async function statementsOf(host: InvitingHost, deed: () => PromiseLike<{ status: number; text: string }>, status: number) {
      const recorded = recordQueries(host.knex)
      const answer = await deed()
      await host.auth.drain()
      const statements = recorded.stop()
      expect(answer.status, answer.text).toBe(status)
      return statements
    }

    /** A sign-up and its activation, from one browser. */
    async function counted(host: InvitingHost, invitation?: string) {
      const email = newAddress()
      const browser = host.browser()
      const signup = await statementsOf(
        host,
        () => browser.post(`${host.prefix}/signup`).send({ email, password, ...(invitation && { invitation }) }),
        201,
      )
      const token = tokenOf(await host.mails.next({ kind: 'activation', to: email }))
      const activation = await statementsOf(host, () => browser.post(`${host.prefix}/activate`).send({ token, password }), 200)
      return { signup, activation }
    }

    test('a sign-up is one statement more, and the activation two', async () => {
      const host = await start()
      const { token } = await invite(host, { uses: 2 })
      await counted(host, String(token)) // what is prepared once
      const [without, withOne] = [await counted(host), await counted(host, String(token))]
      expect(withOne.signup.length - without.signup.length, withOne.signup.join('\n')).toBe(1)
      // MariaDB has no RETURNING for an UPDATE, so its guarded statement reads the row with a second one.
      const isTwice = database.name === 'mariadb'
      expect(withOne.activation.length - without.activation.length, withOne.activation.join('\n')).toBe(isTwice ? 3 : 2)
    })

    test('where invitations are on, a sign-up and an activation without one cost the same as where they are off', async () => {
      const [on, off] = [await start({ settings: { invitationsEnabled: true } }), await start({ settings: { invitationsEnabled: false } })]
      const [first, second] = [await counted(on), await counted(off)]
      expect([first.signup.length, first.activation.length]).toEqual([second.signup.length, second.activation.length])
    })
  })

  describe(`a taken and a free address with one open invitation on ${database.name}`, () => {
    const { start: startOn } = onInvitations(database)
    const start = (signupMode: 'open' | 'invite') =>
      startOn({ settings: { signupMode }, options: { throttle: unhurried, timingDefence: true } })

    test.each(['open', 'invite'] as const)('answer on the grid, with equal bodies, and leave the use, in mode %s', async (signupMode) => {
      const host = await start(signupMode)
      const invitation = await invite(host)
      const { email: taken } = await signedIn(host)
      const left: number[] = []
      const shapes: unknown[] = []
      for (const email of [taken, newAddress(), taken]) {
        const begun = performance.now()
        const { status, body } = await post(host, '/signup', { email, password, invitation: invitation.token })
        expect(performance.now() - begun).toBeGreaterThan(480) // the grid is 500 ms; timers may be early
        shapes.push([status, body.activation_required, body.access_token ?? null, Object.keys(body).sort()])
        left.push((await usesOf(host, invitation)).left)
      }
      expect(left).toEqual([1, 1, 1])
      expect(shapes[1]).toEqual(shapes[0])
      expect(shapes[2]).toEqual(shapes[0])
    })

    test('a refusal is on the grid too, for both', async () => {
      const host = await start('invite')
      const { email: taken } = await signedIn(host)
      for (const email of [taken, newAddress()]) {
        const begun = performance.now()
        const { status, body } = await post(host, '/signup', { email, password, invitation: 'a'.repeat(43) })
        expect([status, body.code, body.details]).toEqual([403, 'INVITATION_REQUIRED', {}])
        expect(performance.now() - begun).toBeGreaterThan(480)
      }
    })
  })

  describe(`a provider that verifies no address, on ${database.name}`, () => {
    const { start } = onInvitations(database)
    const settings = { ...everyWay, signupMode: 'invite' } as const

    async function enter(host: InvitingHost, email: string, invitation?: string) {
      const profile = newPerson({ email, email_verified: false })
      const { query, cookie } = await begin(host, { query: invitation === undefined ? {} : { invitation }, profile })
      return callBack(host, query, { cookie })
    }
    const verifiedAt = async (host: InvitingHost, email: string) =>
      (await host.knex('auth_users').where({ email }).first('email_verified_at'))?.email_verified_at ?? null

    test('a mailed token verifies the address that it was mailed to', async () => {
      const host = await start({ settings })
      const email = newAddress()
      const invitation = await inviteByMail(host, email)
      expect((await enter(host, email, invitation.token)).status).toBe(200)
      expect(await verifiedAt(host, email)).not.toBeNull()
      expect((await usesOf(host, invitation)).left).toBe(0)
    })

    test('a mailed token is refused for another address, and verifies nothing', async () => {
      const host = await start({ settings })
      const [email, other] = [newAddress(), newAddress()]
      const invitation = await inviteByMail(host, email)
      const answer = await enter(host, other, invitation.token)
      expect([answer.status, answer.body.code]).toEqual([403, 'INVITATION_REQUIRED'])
      expect(await host.knex('auth_users').whereIn('email', [email, other])).toEqual([])
      expect((await usesOf(host, invitation)).left).toBe(1)
    })

    test('an invitation that was mailed to the address does not count without its token', async () => {
      const host = await start({ settings })
      const email = newAddress()
      const invitation = await inviteByMail(host, email)
      expect((await enter(host, email)).body.code).toBe('INVITATION_REQUIRED')
      expect((await usesOf(host, invitation)).left).toBe(1)
    })

    test('a token that was shown verifies nothing', async () => {
      const host = await start({ settings })
      const email = newAddress()
      const bound = await invite(host, { email, send: false })
      expect((await enter(host, email, String(bound.token))).body.code).toBe('INVITATION_REQUIRED') // whoever saw it can claim the address
      const open = await invite(host, {})
      expect((await enter(host, email, String(open.token))).status).toBe(200)
      expect(await verifiedAt(host, email)).toBeNull()
    })
  })
}
