import express, { type Express } from 'express'
import { describe, expect, test } from 'vitest'
import { type BoundService, errorHandler } from '../../src'
import { adminOn } from '../admin/people'
import { bearerOf, newAddress, password, signedIn } from '../local/people'
import { newPerson } from '../social/redirect-steps'
import type { Mounted } from '../support/app'
import { databases } from '../support/databases'
import { everyWay, type InvitingHost, invite, onInvitations, usesOf } from './people'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')
const { start: startOn } = onInvitations(sqlite)

type Deed = (bound: BoundService, host: InvitingHost) => Promise<unknown>
const deeds = new WeakMap<Express, () => Promise<unknown>>()
const own = { 'Sec-Fetch-Site': 'same-origin', Origin: 'https://app.example.test' }

/** A route of the host's own, which calls `auth.with`. */
function hostRoute(app: Express, auth: Pick<Mounted['auth'], 'with'>): void {
  app.post('/own', async (req, res, next) => {
    try {
      const deed = deeds.get(app) as ((bound: BoundService) => Promise<unknown>) | undefined
      res.json({ outcome: (await deed?.(auth.with(req, res))) ?? null })
    } catch (error) {
      next(error)
    }
  })
  app.use(express.json(), errorHandler({ logger: { info() {}, warn() {}, error() {} } }))
}

const start = (): Promise<InvitingHost> =>
  startOn({ host: hostRoute, settings: { ...everyWay, tokenDelivery: 'cookie', cookieSecure: true, signupMode: 'invite' } })

function call(host: InvitingHost, deed: Deed, browser = host.browser(), headers: object = {}) {
  deeds.set(host.app, ((bound: BoundService) => deed(bound, host)) as () => Promise<unknown>)
  return browser.post('/own?limit=0&cursor=x').set({ ...own, ...headers })
}

/** Every method that can create an account, and what it answers without an invitation. */
const methods: Readonly<Record<string, (bound: BoundService, host: InvitingHost, carried: { invitation?: string }) => Promise<unknown>>> = {
  signUp: (bound, _host, carried) => bound.signUp({ email: newAddress(), password, ...carried }),
  passkeySignupOptions: (bound, _host, carried) => bound.passkeySignupOptions({ email: newAddress(), ...carried }),
  logInWithToken: (bound, host, carried) =>
    bound.logInWithToken({
      provider: 'corp',
      accessToken: host.provider.issueAccessToken({ profile: newPerson({ email: newAddress() }) }),
      ...carried,
    }),
}

describe('auth.with(req, res) and invitations', () => {
  test.each(Object.entries(methods))('%s needs an invitation: as input, or from the cookie of the browser', async (_name, method) => {
    const host = await start()
    const { token: invitation } = await invite(host, { uses: 3 })
    const refused = await call(host, (bound) => method(bound, host, {}))
    expect([refused.status, refused.body.code]).toEqual([403, 'INVITATION_REQUIRED'])
    expect((await call(host, (bound) => method(bound, host, { invitation: 'a'.repeat(43) }))).body.code).toBe('INVITATION_REQUIRED')
    expect((await call(host, (bound) => method(bound, host, { invitation: '' }))).status).toBe(422)
    expect((await call(host, (bound) => method(bound, host, { invitation: String(invitation) }))).status).toBe(200)
    const browser = host.browser()
    await browser.post(`${host.prefix}/invitations/${invitation}`).set(own).type('form').send({})
    expect((await call(host, (bound) => method(bound, host, {}), browser)).status).toBe(200)
  })

  test('requestEmailLogin mails a new address only with an invitation', async () => {
    const host = await start()
    const { token: invitation } = await invite(host)
    const [without, withOne] = [newAddress(), newAddress()]
    expect((await call(host, (bound) => bound.requestEmailLogin({ email: without }))).status).toBe(200)
    expect((await call(host, (bound) => bound.requestEmailLogin({ email: withOne, invitation: String(invitation) }))).status).toBe(200)
    await host.auth.drain()
    const mailed = host.mails.mails.filter(({ kind }) => kind === 'email_login').map(({ to }) => to)
    expect([mailed.includes(without), mailed.includes(withOne)]).toEqual([false, true])
  })

  test('redeemInvitation uses it with the account that is signed in, once', async () => {
    const host = await start()
    const [invitation, person] = [await invite(host, { data: 'team' }), await signedIn(host)]
    const redeem: Deed = (bound) => bound.redeemInvitation(String(invitation.token))
    expect((await call(host, redeem)).status).toBe(401)
    for (const _twice of [1, 2]) expect((await call(host, redeem, host.browser(), bearerOf(person))).status).toBe(200)
    expect(await usesOf(host, invitation)).toEqual({ left: 0, users: [person.userId] })
    expect(host.calls).toMatchObject([{ userId: person.userId, data: 'team' }])
    const other = await signedIn(host)
    expect((await call(host, redeem, host.browser(), bearerOf(other))).body.code).toBe('INVITATION_REQUIRED')
  })

  test('an administrator creates, lists, sends again and revokes', async () => {
    const host = await start()
    const admin = bearerOf(await adminOn(host))
    const asAdmin = async (deed: Deed) => {
      const { status, body } = await call(host, deed, host.browser(), admin)
      return [status, body.outcome ?? body.code ?? null]
    }
    const create: Deed = (bound) => bound.createInvitation({ data: { expiresInDays: 1 }, uses: 2, expiresInDays: 7 })
    expect((await call(host, create)).status).toBe(401)
    expect((await call(host, create, host.browser(), bearerOf(await signedIn(host)))).status).toBe(403)
    const [, shown] = await asAdmin(create)
    expect(shown).toMatchObject({ data: { expiresInDays: 1 }, usesLeft: 2, token: expect.any(String), url: expect.any(String) })
    const email = newAddress()
    const [, mailed] = await asAdmin((bound) => bound.createInvitation({ email }))
    expect(mailed).toMatchObject({ email, token: null })

    // The query of the host's own URL is none of ours.
    const listed = await call(host, (bound) => bound.listInvitations({ limit: 1 }), host.browser(), admin)
    expect(listed.body.outcome.items).toHaveLength(1)
    const rest = await asAdmin((bound) => bound.listInvitations({ cursor: listed.body.outcome.nextCursor }))
    expect(rest).toMatchObject([200, { nextCursor: null }])
    expect(await asAdmin((bound) => bound.listInvitations({ limit: 0 }))).toEqual([422, 'VALIDATION_ERROR'])

    expect(await asAdmin((bound) => bound.resendInvitation(mailed.id))).toEqual([200, null])
    expect(await asAdmin((bound) => bound.revokeInvitation(shown.id))).toEqual([200, null])
    expect(await asAdmin((bound) => bound.resendInvitation(shown.id))).toEqual([409, 'CONFLICT'])
  })
})
