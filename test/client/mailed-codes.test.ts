import { describe, expect, test } from 'vitest'
import { newAddress, otherPassword, password } from '../local/people'
import { onCodes } from '../mailed-codes/people'
import { member } from '../server-session/devices'
import { databases } from '../support/databases'
import { visitors } from './visitor'

type MailKind = 'activation' | 'password_reset' | 'email_verification' | 'email_change'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')
const { start } = onCodes(sqlite)
const visit = visitors()

describe.each(['bearer', 'cookie', 'both', 'session'] as const)('the client types the codes of mails, in delivery %s', (tokenDelivery) => {
  const open = async () => {
    const host = await start({
      settings: { tokenDelivery, emailLogin: 'both', emailLoginUrlTemplate: 'https://app.example.test/enter/{token}' },
    })
    const visitor = await visit(host, { delivery: tokenDelivery })
    const codeOf = async (kind: MailKind, to: string) => (await host.mails.next({ kind, to })).code ?? ''
    return { host, visitor, codeOf }
  }

  test('signing up', async () => {
    const { visitor, codeOf } = await open()
    const email = newAddress()
    await visitor.auth.signUp({ email, password })
    expect(await visitor.auth.activate({ code: await codeOf('activation', email) })).toMatchObject({ kind: 'session', user: { email } })
  })

  test('signing up, by the code of a second mail', async () => {
    const { visitor, codeOf } = await open()
    const email = newAddress()
    await visitor.auth.signUp({ email, password })
    await codeOf('activation', email)
    await visitor.auth.requestActivation({ email })
    expect(await visitor.auth.activate({ code: await codeOf('activation', email) })).toMatchObject({ kind: 'session', user: { email } })
  })

  test('a new password', async () => {
    const { host, visitor, codeOf } = await open()
    const { email } = await member(host)
    await visitor.auth.password.requestReset({ email })
    const code = await codeOf('password_reset', email)
    expect(await visitor.auth.password.reset({ code, new_password: otherPassword })).toMatchObject({ kind: 'session', user: { email } })
  })

  test('a login, a verification and a change of address, each with its own request, in any order', async () => {
    const { host, visitor, codeOf } = await open()
    const { email } = await member(host, { emailVerifiedAt: null })
    await visitor.auth.logIn({ email, password })
    const next = newAddress()
    await visitor.auth.account.requestVerification()
    await visitor.auth.emailLogin.request({ email })
    await visitor.auth.account.requestEmailChange({ new_email: next, current_password: password })
    expect(await visitor.auth.account.verifyEmail({ code: await codeOf('email_verification', email) })).toMatchObject({
      message: expect.any(String),
    })
    expect(await visitor.auth.account.confirmEmailChange({ code: await codeOf('email_change', next) })).toMatchObject({
      message: expect.any(String),
    })
    expect(visitor.auth.state.user?.email).toBe(next)
  })

  test('a code of another request of the page is refused', async () => {
    const { host, visitor, codeOf } = await open()
    const [one, other] = [await member(host), await member(host)]
    await visitor.auth.password.requestReset({ email: one.email })
    const code = await codeOf('password_reset', one.email)
    await visitor.auth.password.requestReset({ email: other.email })
    await expect(visitor.auth.password.reset({ code, new_password: otherPassword })).rejects.toMatchObject({ code: 'INVALID_TOKEN' })
  })
})

test('without the option delivery, the client finds out before it types a code', async () => {
  const host = await start({ settings: { tokenDelivery: 'bearer' } })
  const visitor = await visit(host)
  const email = newAddress()
  await visitor.auth.signUp({ email, password })
  const { code } = await host.mails.next({ kind: 'activation', to: email })
  expect(await visitor.auth.activate({ code: code ?? '' })).toMatchObject({ kind: 'session', user: { email } })
})

test('in a browser, two pages share the newest request: the code works in the page that asked first', async () => {
  const host = await start({ settings: { tokenDelivery: 'cookie' } })
  const visitor = await visit(host, { delivery: 'cookie' })
  const { email } = await member(host)
  await visitor.auth.password.requestReset({ email })
  await host.mails.next({ kind: 'password_reset', to: email })
  await visitor.again().password.requestReset({ email })
  const { code } = await host.mails.next({ kind: 'password_reset', to: email })
  expect(await visitor.auth.password.reset({ code: code ?? '', new_password: otherPassword })).toMatchObject({ kind: 'session' })
})
