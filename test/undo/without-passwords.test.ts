import { describe, expect, test } from 'vitest'
import { OidcClient } from '../../src'
import { confirm, loginTemplate, person, request } from '../email-login/people'
import { bearerOf, type LocalHost, type LocalOptions, openAs, post } from '../local/people'
import { onMfa } from '../mfa/people'
import { userById } from '../social/accounts-at-hand'
import { newPerson } from '../social/redirect-steps'
import { databases } from '../support/databases'
import type { FakeProvider } from '../support/fake-provider'
import { tokenOf } from '../support/mailbox'
import { undo, undoTokenOf } from './people'

const off = { passwordLogin: false, ...loginTemplate } as const
const corp = (provider: FakeProvider) => new OidcClient(provider.oidcOptions({ introspectionUrl: provider.introspectionUrl }))
const unhurried = { login: false, links: false, mail: false, routes: false } as const

describe.each(await databases())('an undo where there are no passwords, on $name', (database) => {
  const factory = onMfa(database)
  const start = ({ settings, options, ...rest }: LocalOptions = {}) =>
    factory.start({ ...rest, providers: { corp }, settings: { ...off, ...settings }, options: { throttle: unhurried, ...options } })

  /** Somebody linked an identity to the account. */
  async function changed(host: LocalHost) {
    const member = await person(host, { emailVerifiedAt: new Date(0) })
    const linked = { access_token: host.provider.issueAccessToken({ profile: newPerson() }) }
    const answer = await post(host, '/oauth/corp/link', linked, bearerOf(await openAs(host, member.id)))
    if (answer.status !== 201) throw new Error(answer.text)
    return { ...member, undoToken: await undoTokenOf(host, member.email) }
  }

  test('mails a login by email, whose link signs in', async () => {
    const host = await start({ settings: { emailLogin: 'both' } })
    const { email, id, undoToken } = await changed(host)
    const undone = await undo(host, undoToken).expect(200)
    expect(undone.body.address_restored).toBe(true)

    const mail = await host.mails.next({ kind: 'email_login', to: email })
    expect(mail.code).toBeUndefined()
    expect(mail.text).toContain('- a link or a code that we email to this address')
    expect(mail.text).not.toMatch(/password/i)
    const answer = await confirm(host, { token: tokenOf(mail) })
    expect([answer.status, answer.body.user_id]).toEqual([200, id])
  })

  test('ends the logins by email that were asked for before, and strangers who ask for more do not end its own', async () => {
    const host = await start({ settings: { emailLogin: 'link' } })
    const { email, undoToken } = await changed(host)
    await request(host, email)
    const older = tokenOf(await host.mails.next({ kind: 'email_login', to: email }))
    await undo(host, undoToken).expect(200)
    const own = tokenOf(await host.mails.next({ kind: 'email_login', to: email }))
    expect((await confirm(host, { token: older })).status).toBe(401)
    for (let stranger = 0; stranger < 7; stranger += 1) {
      await request(host, email).expect(202)
      await host.mails.next({ kind: 'email_login', to: email })
    }
    expect((await confirm(host, { token: own })).status).toBe(200)
  })

  test('with codes alone it mails the plain notice, and the account stays open: its owner asks for a code', async () => {
    const host = await start({ settings: { emailLogin: 'code' } })
    const { email, id, undoToken } = await changed(host)
    await undo(host, undoToken).expect(200)
    const mail = await host.mails.next({ kind: 'notice', to: email })
    expect([mail.url, mail.text.includes('- a link or a code that we email to this address')]).toEqual([null, true])
    expect((await userById(host.knex, id))?.isActive).toBe(true)
  })

  test('where mails let nobody in and nothing else is left, it closes the account', async () => {
    for (const options of [
      { settings: { emailLogin: 'off' } },
      { settings: { emailLogin: 'both' }, options: { refusesEmailLink: () => true } },
    ] as const) {
      const host = await start(options)
      const conflicts: unknown[] = []
      host.auth.events.on('undo.conflict', (payload) => conflicts.push(payload))
      const { id, undoToken } = await changed(host)
      await undo(host, undoToken).expect(200)
      expect((await userById(host.knex, id))?.isActive).toBe(false)
      expect(conflicts).toEqual([{ userId: id }])
    }
  })
})
