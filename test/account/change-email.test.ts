import { describe, expect, test } from 'vitest'
import type { Mounted } from '../support/app'
import { appPerTest } from '../support/app-per-test'
import { databases } from '../support/databases'
import { linkTemplates, type Mailbox, mailbox, tokenOf } from '../support/mailbox'
import { activePerson, as, type Person, password } from './people'

async function ana(start: ReturnType<typeof appPerTest>, settings: object = {}) {
  const mails = mailbox()
  const mounted = await start({ settings: { ...linkTemplates, ...settings }, options: { mailer: mails } })
  const person = await activePerson(mounted, mails, 'ana@example.test')
  return { mounted, mails, person, ask: (body: object = {}) => ask(mounted, person, body), confirm: confirming(mounted, person) }
}

function ask(mounted: Mounted, person: Person, body: object) {
  const change = { new_email: 'ana@new.example.test', current_password: password, ...body }
  return mounted.browser().post('/auth/email-change/request').set(as(person)).send(change)
}

const confirming = (mounted: Mounted, person: Person) => (token: string) =>
  mounted.browser().post('/auth/email-change/confirm').set(as(person)).send({ token })
const emailOf = async (mounted: Mounted, { id }: Person) => (await mounted.knex('auth_users').where({ id }).first()).email
const subjectsTo = (mails: Mailbox, to: string) => mails.mails.filter((mail) => mail.to === to).length

for (const database of await databases()) {
  describe(`another address for the account, on ${database.name}`, () => {
    const start = appPerTest(database)

    test('the link goes to the new address, a notice to the old one; redeemed, the new one is the account’s, and proven', async () => {
      const { mounted, mails, person, ask, confirm } = await ana(start)
      const heard: unknown[] = []
      mounted.auth.events.on('email.changed', (payload) => heard.push(payload))

      const request = await ask({ new_email: 'Ana@New.example.test' })
      expect([request.status, request.body]).toEqual([202, { message: expect.any(String), confirm_url: null }])
      const link = await mails.next({ kind: 'email_change', to: 'ana@new.example.test' })
      await mails.next({ kind: 'notice', to: 'ana@example.test' })
      expect(await emailOf(mounted, person)).toBe('ana@example.test')

      const confirmed = await confirm(tokenOf(link))
      expect([confirmed.status, Object.keys(confirmed.body)]).toEqual([200, ['message']])
      expect(await emailOf(mounted, person)).toBe('ana@new.example.test')
      expect(heard).toEqual([{ userId: person.id }])
      await mails.next({ kind: 'notice', to: 'ana@example.test' })

      const logIn = (email: string) => mounted.browser().post('/auth/login').send({ email, password })
      expect([(await logIn('ana@example.test')).status, (await logIn('ana@new.example.test')).status]).toEqual([401, 200])
      expect((await confirm(tokenOf(link))).status).toBe(401)
    })

    test('a completed change spends every open link of the account', async () => {
      const { mounted, mails, person, ask, confirm } = await ana(start)
      await mounted.browser().post('/auth/password-reset/request').send({ email: 'ana@example.test' })
      const reset = tokenOf(await mails.next({ kind: 'password_reset' }))
      await mounted.browser().post('/auth/email-verify/request').set(as(person))
      const verification = tokenOf(await mails.next({ kind: 'email_verification' }))
      await ask()
      expect((await confirm(tokenOf(await mails.next({ kind: 'email_change' })))).status).toBe(200)

      const late = { token: reset, new_password: 'a harbour of somebody else' }
      expect((await mounted.browser().post('/auth/password-reset/confirm').send(late)).status).toBe(401)
      expect((await mounted.browser().post('/auth/email-verify/confirm').send({ token: verification })).status).toBe(401)
    })

    test('a taken address: the same 202, no link, and a mail that says so to its owner', async () => {
      const { mounted, mails, ask, person } = await ana(start)
      await activePerson(mounted, mails, 'bob@example.test')
      const before = subjectsTo(mails, 'bob@example.test')
      const [free, taken] = [await ask(), await ask({ new_email: 'bob@example.test' })]

      expect([taken.status, taken.body]).toEqual([free.status, free.body])
      await mails.next({ kind: 'email_change', to: 'ana@new.example.test' })
      const notice = await mails.next({ kind: 'notice', to: 'bob@example.test' })
      expect(notice.url).toBeNull()
      expect(subjectsTo(mails, 'bob@example.test')).toBe(before + 1)
      expect(await emailOf(mounted, person)).toBe('ana@example.test')
      const rows = await mounted.knex('auth_user_tokens').where({ purpose: 'EMAIL_CHANGE' })
      expect(rows.map(({ payload }: { payload: string }) => payload)).toEqual([expect.stringMatching(/^- \S+ ana@new\.example\.test$/)])
    })

    test('an address taken meanwhile is 409 EMAIL_TAKEN, and nothing has changed, the link included', async () => {
      const { mounted, mails, ask, confirm, person } = await ana(start)
      await ask()
      const token = tokenOf(await mails.next({ kind: 'email_change' }))
      await mounted.browser().post('/auth/signup').send({ email: 'ana@new.example.test', password })

      const late = await confirm(token)
      expect([late.status, late.body.code]).toEqual([409, 'EMAIL_TAKEN'])
      expect(await emailOf(mounted, person)).toBe('ana@example.test')
      expect((await mounted.knex('auth_user_tokens').where({ purpose: 'EMAIL_CHANGE' }).first()).used_at).toBeNull()
    })
  })
}

describe('asking for another address', () => {
  const start = appPerTest()

  test('needs a fresh session, and does not look at a password that an older client sends', async () => {
    const { ask, mounted } = await ana(start)
    expect((await ask({ current_password: 'not the harbour at all' })).status).toBe(202)
    mounted.clock.advance(901)
    const { status, body } = await ask({})

    expect([status, body.code]).toEqual([401, 'TOKEN_EXPIRED'])
  })

  test('refuses what is no address, the present one, and an anonymous caller', async () => {
    const { ask, mounted } = await ana(start)

    expect((await ask({ new_email: 'no address' })).status).toBe(422)
    const same = await ask({ new_email: 'ANA@example.test' })
    expect([same.status, same.body.details]).toEqual([422, { errors: [{ path: 'new_email', rule: 'unchanged' }] }])
    expect((await mounted.browser().post('/auth/email-change/request').send({})).status).toBe(401)
  })

  test('a reset or a password change in between kills the link: whoever asked may have been a stranger', async () => {
    const { ask, confirm, mails, mounted, person } = await ana(start)
    await ask()
    const token = tokenOf(await mails.next({ kind: 'email_change' }))
    const change = { current_password: password, new_password: 'a harbour nobody knows of' }
    expect((await mounted.browser().post('/auth/password-change').set(as(person)).send(change)).status).toBe(204)

    expect((await confirm(token)).status).toBe(401)
    expect(await emailOf(mounted, person)).toBe('ana@example.test')
  })
})
