import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { adminOn } from '../admin/people'
import { bearerOf, newAddress, password, post, signedIn } from '../local/people'
import { databases } from '../support/databases'
import { type InvitingHost, invite, inviteByMail, onInvitations } from './people'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')
const { start } = onInvitations(sqlite)

const fields = ['created_at', 'created_by', 'data', 'email', 'expires_at', 'id', 'revoked_at', 'uses_left']

async function onAdmin(options: Parameters<typeof start>[0] = {}) {
  const host = await start(options)
  await host.knex('auth_invitations').delete() // the tests of this file share a database
  const admin = await adminOn(host)
  const ask = (method: 'get' | 'post' | 'delete', path: string, body?: object) =>
    host.browser()[method](`${host.prefix}/admin/invitations${path}`).set(bearerOf(admin)).send(body)
  return { host, admin, ask }
}

function heard(host: InvitingHost) {
  const events: object[] = []
  for (const name of ['invitation.created', 'invitation.revoked', 'invitation.accepted'] as const)
    host.auth.events.on(name, (payload) => void events.push({ name, ...payload }))
  return events
}

describe('an administrator', () => {
  test('creates an invitation for anybody, whose token is shown once', async () => {
    const { host, admin, ask } = await onAdmin()
    const events = heard(host)
    const { status, body } = await ask('post', '', { data: { team: [1] }, uses: 3, expires_in_days: 7 })
    expect(status).toBe(201)
    expect(Object.keys(body).sort()).toEqual([...fields, 'token', 'url'].sort())
    expect(body).toMatchObject({ email: null, data: { team: [1] }, uses_left: 3, created_by: admin.userId, revoked_at: null })
    expect(body.url).toBe(`https://app.example.test/auth/invitations/${body.token}`)
    expect(Date.parse(body.expires_at) - host.clock.now().getTime()).toBe(7 * 86_400_000)
    const list = await ask('get', '')
    expect(list.body).toEqual({ items: [expect.objectContaining({ id: body.id, data: { team: [1] } })], next_cursor: null })
    expect(Object.keys(list.body.items[0]).sort()).toEqual(fields)
    expect(list.text).not.toContain(body.token)
    expect(events).toEqual([{ name: 'invitation.created', invitationId: body.id, actorId: admin.userId }])
  })

  test('mails an invitation that has an address, and nobody is shown its token', async () => {
    const { host, admin, ask } = await onAdmin({ settings: { invitationUrlTemplate: 'https://app.example.test/join?t={token}' } })
    const email = newAddress()
    const { body } = await ask('post', '', { email: email.toUpperCase() })
    expect(body).toMatchObject({ email, uses_left: 1, token: null, url: null, data: null })
    const mail = await host.mails.next({ kind: 'invitation', to: email })
    expect(mail.url).toMatch(/^https:\/\/app\.example\.test\/join\?t=[\w-]{43}$/)
    expect(mail.text).toContain('An Administrator')
    expect(mail.text).not.toContain(admin.email)
    const token = String(mail.url?.split('=')[1])
    expect((await post(host, '/signup', { email, password, invitation: token })).body.activation_required).toBe(false)
  })

  test.each([
    { email: 'nobody' },
    { uses: 0 },
    { uses: 10_001 },
    { uses: 1.5 },
    { uses: 2, email: 'ana@example.test' },
    { expires_in_days: 0 },
    { expires_in_days: 366 },
    { data: 'x'.repeat(4_095) },
    { data: 'é'.repeat(2_048) },
    { data: { zero: '\0' } },
    { data: ['\\\0'] },
    { data: { '\0': 1 } },
    { send: true },
    { send: 'yes' },
  ])('is refused a wrong invitation, which is not stored: %j', async (body) => {
    const { ask } = await onAdmin()
    expect((await ask('post', '', body)).status).toBe(422)
    expect((await ask('get', '')).body.items).toEqual([])
  })

  test.each([
    { data: 'x'.repeat(4_094) },
    { data: String.raw`\u0000 \\u0000` },
    { data: null },
    { data: false },
    { data: 0 },
    { uses: 10_000 },
    { expires_in_days: 365 },
    {},
  ])('may create the greatest and the smallest: %#', async (body) => {
    const { ask } = await onAdmin()
    const created = await ask('post', '', body)
    expect([created.status, created.body.data]).toEqual([201, 'data' in body ? body.data : null])
  })

  test('lists page by page, newest first', async () => {
    const { host, ask } = await onAdmin()
    const made: string[] = []
    for (let count = 0; count < 5; count++) {
      made.unshift((await invite(host)).id)
      host.clock.advance(1)
    }
    const seen: string[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const { body } = await ask('get', `?limit=2${cursor && `&cursor=${cursor}`}`)
      seen.push(...body.items.map(({ id }: { id: string }) => id))
      cursor = body.next_cursor
    }
    expect(seen).toEqual(made)
    const tooLate = Buffer.from(JSON.stringify([8.64e15, randomUUID()])).toString('base64url')
    for (const query of ['?limit=0', '?limit=101', '?limit=x', '?cursor=x', `?cursor=${tooLate}`, '?limit=1&limit=2'])
      expect([query, (await ask('get', query)).status]).toEqual([query, 422])
  })

  test('revokes an invitation: 204, again 204, and 404 for one that is not there', async () => {
    const { host, admin, ask } = await onAdmin()
    const events = heard(host)
    const { id, token } = await invite(host)
    for (const _ of [1, 2]) expect((await ask('delete', `/${id}`)).status).toBe(204)
    expect((await ask('delete', '/00000000-0000-4000-8000-000000000000')).status).toBe(404)
    expect((await ask('delete', '/x')).status).toBe(404)
    expect((await post(host, '/signup', { email: newAddress(), password, invitation: token })).status).toBe(403)
    expect(events).toEqual([
      { name: 'invitation.created', invitationId: id },
      { name: 'invitation.revoked', invitationId: id, actorId: admin.userId },
    ])
  })

  test('sends an invitation again: a new token is mailed, and the old one ends', async () => {
    const { host, ask } = await onAdmin()
    const email = newAddress()
    const first = await inviteByMail(host, email)
    expect((await ask('post', `/${first.id}/resend`)).status).toBe(202)
    const mail = await host.mails.next({ kind: 'invitation', to: email })
    expect((await post(host, '/signup', { email, password, invitation: first.token })).status).toBe(403)
    expect((await post(host, '/signup', { email, password, invitation: String(mail.url?.split('/').at(-1)) })).status).toBe(201)
    expect((await ask('post', `/${first.id}/resend`)).body.code).toBe('CONFLICT') // it is used up
    const shown = await invite(host)
    const revoked = await inviteByMail(host, newAddress())
    await host.auth.service.invitations.revoke(revoked.id)
    const over = await inviteByMail(host, newAddress(), { expiresInDays: 1 })
    host.clock.advance(86_400)
    for (const { id } of [shown, revoked]) expect(await host.auth.service.invitations.resend(id).catch(({ code }) => code)).toBe('CONFLICT')
    await expect(host.auth.service.invitations.resend(over.id)).rejects.toMatchObject({ code: 'CONFLICT' })
    await expect(host.auth.service.invitations.resend('x')).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  test('mails 500 a day at most', async () => {
    const { ask, host } = await onAdmin()
    const { id } = await inviteByMail(host, newAddress())
    for (let count = 0; count < 500; count++) if ((await ask('post', `/${id}/resend`)).status !== 202) throw new Error(`refused ${count}`)
    expect((await ask('post', '', { email: newAddress() })).status).toBe(429)
    expect((await ask('post', '', {})).status).toBe(201)
  })

  test.each([
    ['post', ''],
    ['get', ''],
    ['delete', '/x'],
    ['post', '/x/resend'],
  ] as const)('is who may call %s /admin/invitations%s', async (method, path) => {
    const host = await start()
    const person = await signedIn(host)
    const url = `${host.prefix}/admin/invitations${path}`
    expect((await host.browser()[method](url)).status).toBe(401)
    expect((await host.browser()[method](url).set(bearerOf(person))).status).toBe(403)
  })

  test.each([
    ['post', '/invitations'],
    ['delete', '/invitations/x'],
    ['post', '/invitations/x/resend'],
    ['post', '/users/x/approve'],
    ['post', '/users/x/decline'],
  ] as const)('needs a fresh session for %s /admin%s', async (method, path) => {
    const host = await start({ settings: { signupMode: 'approve', freshSessionSeconds: 60 } })
    const admin = await adminOn(host)
    host.clock.advance(61)
    const answer = await host.browser()[method](`${host.prefix}/admin${path}`).set(bearerOf(admin)).send({})
    expect([answer.status, answer.body.code]).toEqual([403, 'REAUTHENTICATION_REQUIRED'])
  })

  test('above the limit of links of an address, the invitation exists and no mail is sent', async () => {
    const { host, ask } = await onAdmin({ options: { throttle: { mail: { links: [{ attempts: 1, windowSeconds: 60 }] } } } })
    const email = newAddress()
    expect((await ask('post', '', { email })).status).toBe(201)
    expect((await ask('post', '', { email })).status).toBe(201)
    await host.auth.drain()
    expect(host.mails.mails.filter(({ to }) => to === email)).toHaveLength(1)
  })
})

test('while invitations are off, none of their routes exists, and the service says so', async () => {
  const host = await start({ settings: { invitationsEnabled: false } })
  const admin = await adminOn(host)
  for (const path of ['/invitations/redeem', '/invitations/leave', '/admin/invitations', '/invitations/x'])
    expect([path, (await post(host, path, {}, bearerOf(admin))).status]).toEqual([path, 404])
  await expect(host.auth.service.invitations.create()).rejects.toThrow('Invitations are off: set invitationsEnabled')
  expect((await post(host, '/signup', { email: newAddress(), password, invitation: 'x' })).status).toBe(201)
})

test('an invitation is purged 30 days after its end, with its uses', async () => {
  const { host } = await onAdmin()
  const person = await signedIn(host)
  const { id, token } = await invite(host, { expiresInDays: 1 })
  await host.auth.service.invitations.redeem(person.userId, String(token))
  const { purgeExpired, createKnexStore } = await import('../../src')
  const at = (days: number) => ({ before: new Date(host.clock.now().getTime() + days * 86_400_000) })
  expect((await purgeExpired(createKnexStore({ knex: host.knex }), at(30)))['invitations']).toBe(0)
  expect((await purgeExpired(createKnexStore({ knex: host.knex }), at(32)))['invitations']).toBe(1)
  expect(await host.knex('auth_invitation_uses').where({ invitation_id: id })).toEqual([])
})
