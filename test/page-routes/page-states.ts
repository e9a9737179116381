import type { Page } from 'playwright-core'
import { loginTemplate } from '../email-login/people'
import { newAddress, otherPassword, password, pending, resetLink, signedIn } from '../local/people'
import { type EnrolledMember, enrolled, mfaSettings } from '../mfa/people'
import { ownerWithFactor, passkeyOwner, passkeySettings } from '../passkeys/people'
import { addIdentity } from '../social/accounts-at-hand'
import { tokenOf } from '../support/mailbox'
import { type PagesHost, sendInPage } from './pages-in-chromium'

/** A page in one state, and how a person comes to see it. */
export interface PageState {
  readonly name: string
  readonly open: (page: Page, served: PagesHost) => Promise<unknown>
}

const account = '/auth/account'
const security = `${account}/security`

async function logIn(page: Page, { email }: { email: string }): Promise<void> {
  await page.goto('/auth/login')
  await sendInPage(page, { email, password })
}

/** Somebody new, signed in here. */
async function arrive(page: Page, { host }: PagesHost, changes: Parameters<typeof signedIn>[1] = { name: 'Ada Lovelace' }) {
  const member = await signedIn(host, changes)
  await logIn(page, member)
  return member
}

async function arriveWithFactor(page: Page, { host }: PagesHost): Promise<EnrolledMember> {
  const member = await enrolled(host)
  await logIn(page, member)
  await sendInPage(page, { code: member.app.nextCode() })
  return member
}

/** An account that a provider opened; it has no password. */
async function arriveByProvider(page: Page, served: PagesHost, { hasProvider = true, isVerified = true } = {}) {
  const { host } = served
  const member = await arrive(page, served)
  const createdAt = new Date(host.clock.now().getTime() - 172_800_000)
  if (hasProvider) await addIdentity(host.knex, member.userId, { email: member.email, createdAt })
  await host
    .knex('auth_users')
    .where({ id: member.userId })
    .update({ hashed_password: `!${'x'.repeat(43)}`, ...(!isVerified && { email_verified_at: null }) })
  return member
}

async function otherDevices({ host }: PagesHost, { email }: { email: string }, count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    await host.browser().post('/auth/login').set('User-Agent', longAgent).send({ email, password })
  }
}
const longAgent = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'

const state = (name: string, open: PageState['open']): PageState => ({ name, open })
/** What a signed-in person sees at an address. */
const shown = (path: string, name = path) =>
  state(name, async (page, served) => {
    await arrive(page, served)
    await page.goto(`${account}${path}`)
  })
const filled = (path: string, name: string, fields: Readonly<Record<string, string>>, form?: string) =>
  state(name, async (page, served) => {
    await arrive(page, served)
    await page.goto(`${account}${path}`)
    await sendInPage(page, fields, form)
  })
const withFactor = (path: string, name: string, fields?: (member: EnrolledMember) => Readonly<Record<string, string>>) =>
  state(name, async (page, served) => {
    const member = await arriveWithFactor(page, served)
    await page.goto(`${security}${path}`)
    if (fields) await sendInPage(page, fields(member))
  })

const signedOut: PageState[] = [
  state('the sign-in page', (page) => page.goto('/auth/login')),
  state('the sign-in page, with nothing filled in', async (page) => {
    await page.goto('/auth/login')
    await sendInPage(page)
  }),
  state('the sign-in page, with a wrong password', (page) => logIn(page, { email: newAddress() })),
  state('the sign-in page, after too many attempts', async (page, { host }) => {
    const { email } = await signedIn(host)
    for (let count = 0; count < 12; count += 1) await page.request.post('/auth/login', { data: { email, password: 'not this one' } })
    await logIn(page, { email })
  }),
  state('the sign-in page, when a provider said no', (page) => page.goto('/auth/login?error=OAUTH_PROVIDER_DENIED')),
  state('the sign-in page, to change the person', async (page, served) => {
    await arrive(page, served)
    await page.goto('/auth/login?switch=1')
  }),
  state('an address that leads nowhere', (page) => page.goto('/auth/login?return_to=https://elsewhere.example')),
  state('the challenge', async (page, { host }) => logIn(page, await enrolled(host))),
  state('the challenge, with a wrong code', async (page, { host }) => {
    await logIn(page, await enrolled(host))
    await sendInPage(page, { code: '000000' })
  }),
  state('signed out', (page) => page.goto('/auth/signed-out')),
  state('to sign up', (page) => page.goto('/auth/signup')),
  state('to sign up, with nothing filled in', async (page) => {
    await page.goto('/auth/signup')
    await sendInPage(page)
  }),
  state('to sign up, with a password that is too short', async (page) => {
    await page.goto('/auth/signup')
    await sendInPage(page, { email: newAddress(), password: 'short' })
  }),
  state('where the mail of a sign-up went', async (page) => {
    await page.goto('/auth/signup')
    await sendInPage(page, { email: newAddress(), password })
  }),
  state('where the mail went, sent again', async (page) => {
    await page.goto('/auth/signup')
    await sendInPage(page, { email: newAddress(), password })
    await sendInPage(page)
  }),
  state('to ask for another password', (page) => page.goto('/auth/forgot-password')),
  state('to ask for another password, with what is no address', async (page) => {
    await page.goto('/auth/forgot-password')
    await sendInPage(page, { email: 'no address' })
  }),
  state('where the mail with another password went', async (page) => {
    await page.goto('/auth/forgot-password')
    await sendInPage(page, { email: newAddress() })
  }),
  state('to sign out', async (page, served) => {
    await arrive(page, served)
    await page.goto('/auth/logout')
  }),
]

const confirmations: PageState[] = [
  state('to confirm by the password', async (page, served) => {
    await arrive(page, served)
    await page.goto('/auth/reauthenticate')
  }),
  state('to confirm, with a wrong password', async (page, served) => {
    await arrive(page, served)
    await page.goto('/auth/reauthenticate')
    await sendInPage(page, { password: 'not this one' })
  }),
  state('to confirm by a code', async (page, served) => {
    await arriveWithFactor(page, served)
    await page.goto('/auth/reauthenticate')
  }),
  state('to confirm by a provider', async (page, served) => {
    await arriveByProvider(page, served)
    await page.goto('/auth/reauthenticate')
  }),
  state('to confirm, with nothing to confirm by', async (page, served) => {
    await arriveByProvider(page, served, { hasProvider: false, isVerified: false })
    await page.goto('/auth/reauthenticate')
  }),
]

const byEmail: PageState[] = [
  state('where the mail to sign in with went', async (page) => {
    await page.goto('/auth/login')
    await sendInPage(page, { email: newAddress() }, emailForm)
  }),
  state('the code of that mail, which is wrong', async (page) => {
    await page.goto('/auth/login')
    await sendInPage(page, { email: newAddress() }, emailForm)
    await sendInPage(page, { code: '1234 5678' })
  }),
  state('the code of a first proof, which asks for the password', async (page, { host }) => {
    const { email } = await pending(host)
    await page.goto('/auth/login')
    await sendInPage(page, { email }, emailForm)
    await sendInPage(page, { code: String((await host.mails.next({ kind: 'email_login', to: email })).code) })
    await page.locator('[name="forgot"]').waitFor()
  }),
  state('a page that was opened too often', async (page) => {
    for (let count = 0; count < 60; count += 1) await page.request.get('/auth/forgot-password')
    await page.goto('/auth/forgot-password')
  }),
  state('the sign-in page, without an address to send the mail to', async (page) => {
    await page.goto('/auth/login')
    await sendInPage(page, {}, emailForm)
  }),
  state('to confirm by a mailed code', async (page, served) => {
    await arrive(page, served)
    await page.goto('/auth/reauthenticate')
    await sendInPage(page, {}, 'form:has([name="send_code"])')
  }),
  state('to confirm by a mailed code, which is wrong', async (page, served) => {
    await arrive(page, served)
    await page.goto('/auth/reauthenticate')
    await sendInPage(page, {}, 'form:has([name="send_code"])')
    await sendInPage(page, { email_code: '1234 5678' }, 'form:has([name="email_code"])')
  }),
  state('the link of a mail to sign in with', async (page, { host }) => {
    const { email } = await signedIn(host)
    await page.goto('/auth/login')
    await sendInPage(page, { email }, emailForm)
    await page.goto(`/auth/email-login/${tokenOf(await host.mails.next({ kind: 'email_login', to: email }))}`)
  }),
]
const emailForm = 'form[action*="email-login"]'

const accountArea: PageState[] = [
  shown('', 'the overview'),
  state('the overview of somebody without a name, with a long address', (page, served) =>
    arrive(page, served, { name: null, email: `${'somebody-with-a-long-address-'.repeat(2)}${newAddress()}` }),
  ),
  shown('/profile', 'the name'),
  filled('/profile', 'the name, saved', { name: 'Augusta Ada King, Countess of Lovelace' }),
  filled('/profile', 'the name, too long', { name: 'x'.repeat(121) }),
  shown('/email', 'the address'),
  state('the address, not verified', async (page, served) => {
    await arrive(page, served, { emailVerifiedAt: null })
    await page.goto(`${account}/email`)
  }),
  state('the address, changed', async (page, served) => {
    await arrive(page, served)
    await page.goto(`${account}/email`)
    await sendInPage(page, { new_email: newAddress() }, 'form:has([name="new_email"])')
  }),
  filled('/email', 'the address, which is none', { new_email: 'no address' }, 'form:has([name="new_email"])'),
  shown('/password', 'the password'),
  filled('/password', 'the password, with nothing filled in', {}),
  filled('/password', 'the password, which is too short', {
    current_password: password,
    new_password: 'short',
    confirm_password: 'short',
  }),
  filled('/password', 'the password, with a wrong one', {
    current_password: 'not this one',
    new_password: otherPassword,
    confirm_password: otherPassword,
  }),
  state('the first password', async (page, served) => {
    await arriveByProvider(page, served)
    await page.goto(`${account}/password`)
  }),
  shown('/connections', 'the connections'),
  shown('/connections?error=OAUTH_PROVIDER_DENIED', 'the connections, when the provider said no'),
  state('the connections, with one', async (page, served) => {
    await arriveByProvider(page, served)
    await page.goto(`${account}/connections`)
  }),
  state('to disconnect', async (page, served) => {
    await arriveByProvider(page, served)
    await page.goto(`${account}/connections/remove?provider=corp`)
  }),
  state('to disconnect the only way in', async (page, served) => {
    await arriveByProvider(page, served)
    await page.goto(`${account}/connections/remove?provider=corp`)
    await sendInPage(page)
  }),
  state('the devices', async (page, served) => {
    await otherDevices(served, await arrive(page, served), 3)
    await page.goto(`${account}/devices`)
  }),
  state('the devices, one of them signed out', async (page, served) => {
    await otherDevices(served, await arrive(page, served), 1)
    await page.goto(`${account}/devices`)
    await sendInPage(page)
  }),
]

const factor: PageState[] = [
  shown('/security', 'the factor, off'),
  withFactor('', 'the factor, on'),
  shown('/security/authenticator', 'before the QR code'),
  filled('/security/authenticator', 'the QR code', {}),
  state('the QR code, after a wrong code', async (page, served) => {
    await arrive(page, served)
    await page.goto(`${security}/authenticator`)
    await sendInPage(page)
    await sendInPage(page, { code: '000000' })
  }),
  withFactor('/recovery-codes', 'new recovery codes'),
  withFactor('/recovery-codes', 'new recovery codes, made', ({ app }) => ({ code: app.nextCode() })),
  withFactor('/recovery-codes', 'new recovery codes, without a code', () => ({})),
  withFactor('/authenticator', 'another phone'),
  withFactor('/turn-off', 'to turn the factor off'),
  withFactor('/turn-off', 'to turn the factor off, with nothing filled in', () => ({})),
]

/** Somebody with a passkey, at a page of it. */
const withPasskey = (path: string, name: string, fields?: Readonly<Record<string, string>>) =>
  state(name, async (page, served) => {
    const { email } = await passkeyOwner(served.host, { origin: served.url })
    await logIn(page, { email })
    await page.goto('/auth/account/security')
    if (path !== '') await page.goto(String(await page.locator(`a[href*="passkeys/${path}"]`).first().getAttribute('href')))
    if (fields) await sendInPage(page, fields)
  })

const passkeys: PageState[] = [
  shown('/security/passkeys/add', 'to add a passkey'),
  state('to add a passkey, of which nothing came', async (page, served) => {
    await arrive(page, served)
    await page.goto(`${account}/security/passkeys/add`)
    await Promise.all([page.waitForEvent('domcontentloaded'), page.evaluate('document.querySelector("form[data-passkey]").submit()')])
  }),
  withPasskey('', 'a passkey on the security page'),
  withPasskey('rename', 'to rename a passkey'),
  withPasskey('rename', 'to rename a passkey, without a name', { name: '' }),
  withPasskey('remove', 'to remove a passkey'),
  state('a passkey in place of the password, which was refused', async (page) => {
    await page.goto('/auth/login')
    await Promise.all([page.waitForEvent('domcontentloaded'), page.evaluate('document.querySelector("form[data-passkey]").submit()')])
  }),
  state('a passkey as the second step', async (page, { host, url }) => logIn(page, await ownerWithFactor(host, { origin: url }))),
  state('to confirm by a passkey', async (page, served) => {
    await logIn(page, await passkeyOwner(served.host, { origin: served.url }))
    await page.goto('/auth/reauthenticate')
  }),
]

const linkPages: PageState[] = [
  state('the link of a sign-up', async (page, { host }) => page.goto(`/auth/activate/${(await pending(host)).link}`)),
  state('the link of a sign-up, used', async (page, { host }) => {
    await page.goto(`/auth/activate/${(await pending(host)).link}`)
    await sendInPage(page)
  }),
  state('the link of a second sign-up, with a wrong password', async (page, { host }) => {
    const { email } = await pending(host)
    await host.browser().post('/auth/signup').send({ email, password: otherPassword })
    await page.goto(`/auth/activate/${tokenOf(await host.mails.next({ kind: 'activation', to: email }))}`)
    await sendInPage(page, { password: 'not this one' })
  }),
  state('the link to another password', async (page, { host }) => {
    const { email } = await signedIn(host)
    await page.goto(`/auth/password-reset/${await resetLink(host, email)}`)
  }),
  state('the link to another password, which is too short', async (page, { host }) => {
    const { email } = await signedIn(host)
    await page.goto(`/auth/password-reset/${await resetLink(host, email)}`)
    await sendInPage(page, { new_password: 'short', confirm_password: 'short' })
  }),
  state('the link to another password, used', async (page, { host }) => {
    const { email } = await signedIn(host)
    await page.goto(`/auth/password-reset/${await resetLink(host, email)}`)
    await sendInPage(page, { new_password: otherPassword, confirm_password: otherPassword })
  }),
  state('a link that is over', (page) => page.goto(`/auth/activate/${'x'.repeat(43)}`)),
]

export const stateSettings = { ...mfaSettings, ...passkeySettings, ...loginTemplate, emailLogin: 'both' } as const
export const pageStates: readonly PageState[] = [
  ...signedOut,
  ...byEmail,
  ...confirmations,
  ...accountArea,
  ...factor,
  ...passkeys,
  ...linkPages,
]
