import type { Page } from 'playwright-core'
import { task } from '../../src'
import type { NewInvitation } from '../../src/invitations/manage-invitations'
import { applicant, approving } from '../approval/people'
import { loginTemplate } from '../email-login/people'
import { type LocalHost, type LocalOptions, newAddress, otherPassword, password, pending, resetLink, signedIn } from '../local/people'
import { codeFor, everyTask, expired, person } from '../login-tasks/people'
import { authenticator } from '../mfa/authenticator'
import { type EnrolledMember, enrolled, mfaSettings } from '../mfa/people'
import { newcomer, signupSettings } from '../passkeys/newcomers'
import { newAuthenticator, ownerWithFactor, passkeyOwner, passkeySettings } from '../passkeys/people'
import { addIdentity } from '../social/accounts-at-hand'
import { tokenOf } from '../support/mailbox'
import { undoTokenOf } from '../undo/people'
import { type PagesHost, sendInPage } from './pages-in-chromium'

/** A page in one state, and how a person comes to see it. */
export interface PageState {
  readonly name: string
  readonly open: (page: Page, served: PagesHost) => Promise<unknown>
  /** Of the host, over `stateSettings`. */
  readonly settings?: LocalOptions['settings']
  readonly options?: LocalOptions['options']
}

const account = '/auth/account'
const security = `${account}/security`

async function logIn(page: Page, { email }: { email: string }): Promise<void> {
  await page.goto('/auth/login')
  await sendInPage(page, { email, password })
}

/** In the page's browser, without its pages: that takes a fifth of the time. */
async function enter({ request }: Page, { email }: { email: string }) {
  return (await request.post('/auth/login', { data: { email, password } })).json()
}

/** Somebody new, signed in here. */
async function arrive(page: Page, { host }: PagesHost, changes: Parameters<typeof signedIn>[1] = { name: 'Ada Lovelace' }) {
  const member = await signedIn(host, changes)
  await enter(page, member)
  return member
}

async function arriveWithFactor(page: Page, { host }: PagesHost, trust_device = false): Promise<EnrolledMember> {
  const member = await enrolled(host)
  const { mfa_token } = await enter(page, member)
  await page.request.post('/auth/mfa/verify', { data: { mfa_token, code: member.app.nextCode(), trust_device } })
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

/** As a script does, whatever the page's own script makes of the button. */
async function submit(page: Page, form: string): Promise<void> {
  await Promise.all([page.waitForEvent('domcontentloaded'), page.evaluate(`document.querySelector(${JSON.stringify(form)}).submit()`)])
}

const state = (name: string, open: PageState['open'], host: Omit<PageState, 'name' | 'open'> = {}): PageState => ({ name, open, ...host })
/** What a signed-in person sees at an address. */
const presented = (path: string, name = path) =>
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

const passkeyAlone = { ...signupSettings, signupWith: ['passkey'], passwordLogin: false } as const

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
  state('the sign-in page, after a form that was not saved', async (page, served) => {
    await arrive(page, served)
    await page.goto(`${account}/profile`)
    await page.context().clearCookies()
    await sendInPage(page, { name: 'Ada' })
  }),
  state('the sign-in page, after a challenge that is over', async (page, { host }) => {
    const { email, userId, app } = await enrolled(host)
    await logIn(page, { email })
    await host.knex('auth_users').where({ id: userId }).update({ is_active: false })
    await sendInPage(page, { code: app.nextCode() })
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
  state('to sign up with a passkey or a password', (page) => page.goto('/auth/signup'), { settings: signupSettings }),
  state('to sign up with a passkey alone', (page) => page.goto('/auth/signup'), { settings: passkeyAlone }),
  state(
    'to sign up with a passkey that the browser did not make',
    async (page) => {
      await page.goto('/auth/signup')
      await page.locator('[type="email"]').fill(newAddress())
      await submit(page, 'form[data-passkey="create"]')
    },
    { settings: passkeyAlone },
  ),
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
    await sendInPage(page, { email: newAddress() }, 'main form', emailButton)
  }),
  state('the code of that mail, which is wrong', async (page) => {
    await page.goto('/auth/login')
    await sendInPage(page, { email: newAddress() }, 'main form', emailButton)
    await sendInPage(page, { code: '1234 5678' })
  }),
  state('the code of a first proof, which asks for the password', async (page, { host }) => {
    const { email } = await pending(host)
    await page.goto('/auth/login')
    await sendInPage(page, { email }, 'main form', emailButton)
    await sendInPage(page, { code: String((await host.mails.next({ kind: 'email_login', to: email })).code) })
    await page.locator('[name="forgot"]').waitFor()
  }),
  state('a page that was opened too often', async (page) => {
    for (let count = 0; count < 60; count += 1) await page.request.get('/auth/forgot-password')
    await page.goto('/auth/forgot-password')
  }),
  state('the sign-in page, without an address to send the mail to', async (page) => {
    await page.goto('/auth/login')
    await sendInPage(page, {}, 'main form', emailButton)
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
    await sendInPage(page, { email }, 'main form', emailButton)
    await page.goto(`/auth/email-login/${tokenOf(await host.mails.next({ kind: 'email_login', to: email }))}`)
  }),
  {
    name: 'the code beside the link of a sign-up',
    settings: { mailedCodes: 'both' },
    async open(page) {
      await page.goto('/auth/signup')
      await sendInPage(page, { email: newAddress(), password })
    },
  },
  {
    name: 'the code and the new password, refused',
    settings: { mailedCodes: 'both' },
    async open(page, { host }) {
      const { email } = await signedIn(host)
      await page.goto('/auth/forgot-password')
      await sendInPage(page, { email })
      const { code = '' } = await host.mails.next({ kind: 'password_reset', to: email })
      await sendInPage(page, { code, new_password: 'short' })
    },
  },
  {
    name: 'the address, confirmed by its code',
    settings: { mailedCodes: 'both' },
    async open(page, served) {
      const { email } = await arrive(page, served, { emailVerifiedAt: null })
      await page.goto(`${account}/email`)
      await sendInPage(page)
      const { code = '' } = await served.host.mails.next({ kind: 'email_verification', to: email })
      await sendInPage(page, { code })
    },
  },
  {
    name: 'the address, changed by the code',
    settings: { mailedCodes: 'both' },
    async open(page, served) {
      await arrive(page, served)
      await page.goto(`${account}/email`)
      const to = newAddress()
      await sendInPage(page, { new_email: to }, 'form:has([name="new_email"])')
      const { code = '' } = await served.host.mails.next({ kind: 'email_change', to })
      await sendInPage(page, { code })
    },
  },
]
const emailButton = 'button[formaction*="email-login"]'

const accountArea: PageState[] = [
  presented('', 'the overview'),
  state('the overview of somebody without a name, with a long address', async (page, served) => {
    await arrive(page, served, { name: null, email: `${'somebody-with-a-long-address-'.repeat(2)}${newAddress()}` })
    await page.goto(account)
  }),
  presented('/profile', 'the name'),
  filled('/profile', 'the name, saved', { name: 'Augusta Ada King, Countess of Lovelace' }),
  filled('/profile', 'the name, too long', { name: 'x'.repeat(121) }),
  presented('/email', 'the address'),
  state('the address, not verified', async (page, served) => {
    await arrive(page, served, { emailVerifiedAt: null })
    await page.goto(`${account}/email`)
  }),
  state('the address, not verified, and its link sent', async (page, served) => {
    await arrive(page, served, { emailVerifiedAt: null })
    await page.goto(`${account}/email`)
    await sendInPage(page)
  }),
  state('the address, changed', async (page, served) => {
    await arrive(page, served)
    await page.goto(`${account}/email`)
    await sendInPage(page, { new_email: newAddress() }, 'form:has([name="new_email"])')
  }),
  filled('/email', 'the address, which is none', { new_email: 'no address' }, 'form:has([name="new_email"])'),
  presented('/password', 'the password'),
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
  state('the first password, set', async (page, served) => {
    await arriveByProvider(page, served)
    await page.goto(`${account}/password`)
    await sendInPage(page, { new_password: otherPassword, confirm_password: otherPassword })
  }),
  presented('/connections', 'the connections'),
  presented('/connections?error=OAUTH_PROVIDER_DENIED', 'the connections, when the provider said no'),
  state('the connections, with one', async (page, served) => {
    await arriveByProvider(page, served)
    await page.goto(`${account}/connections`)
  }),
  state('to disconnect', async (page, served) => {
    await arriveByProvider(page, served)
    await page.goto(`${account}/connections/remove?provider=corp`)
  }),
  state('the connections, one of them disconnected', async (page, served) => {
    const { userId } = await arrive(page, served)
    await addIdentity(served.host.knex, userId)
    await page.goto(`${account}/connections/remove?provider=corp`)
    await sendInPage(page)
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
  state('the devices, all others signed out', async (page, served) => {
    await otherDevices(served, await arrive(page, served), 2)
    await page.goto(`${account}/devices`)
    await sendInPage(page, {}, 'form:has([value="others"])')
  }),
  state('the devices, one of them signed out', async (page, served) => {
    await otherDevices(served, await arrive(page, served), 1)
    await page.goto(`${account}/devices`)
    await sendInPage(page)
  }),
  state('the devices, with a trusted browser', async (page, served) => {
    await arriveWithFactor(page, served, true)
    await page.goto(`${account}/devices`)
  }),
  state('the devices, a browser no longer trusted', async (page, served) => {
    await arriveWithFactor(page, served, true)
    await page.goto(`${account}/devices`)
    await sendInPage(page, {}, 'form:has([name="trusted"])')
  }),
]

const factor: PageState[] = [
  presented('/security', 'the factor, off'),
  withFactor('', 'the factor, on'),
  presented('/security/authenticator', 'before the QR code'),
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
  withFactor('/turn-off', 'the factor, turned off', ({ app }) => ({ password, code: app.nextCode() })),
]

/** Somebody with a passkey, at a page of it. */
const withPasskey = (path: string, name: string, fields?: Readonly<Record<string, string>>) =>
  state(name, async (page, served) => {
    await enter(page, await passkeyOwner(served.host, { origin: served.url }))
    await page.goto(security)
    if (path !== '') await page.goto(String(await page.locator(`a[href*="passkeys/${path}"]`).first().getAttribute('href')))
    if (fields) await sendInPage(page, fields)
  })

const passkeys: PageState[] = [
  presented('/security/passkeys/add', 'to add a passkey'),
  state('to add a passkey, of which nothing came', async (page, served) => {
    await arrive(page, served)
    await page.goto(`${account}/security/passkeys/add`)
    await submit(page, '[data-passkey]')
  }),
  withPasskey('', 'a passkey on the security page'),
  withPasskey('rename', 'to rename a passkey'),
  withPasskey('rename', 'to rename a passkey, without a name', { name: '' }),
  withPasskey('rename', 'a passkey, renamed', { name: 'Laptop' }),
  withPasskey('remove', 'to remove a passkey'),
  withPasskey('remove', 'a passkey, removed', {}),
  state('a passkey, added', async (page, served) => {
    await arrive(page, served)
    await page.goto(`${account}/security/passkeys/add`)
    const asked = await page.request.post('/auth/passkeys/register/options', { data: {}, headers: { Origin: served.url } })
    const { challenge_token, ...options } = await asked.json()
    const credential = JSON.stringify(newAuthenticator({ origin: served.url }).create(options))
    const made = JSON.stringify({ credential, challenge_token })
    await page.evaluate(`for (const [name, value] of Object.entries(${made})) document.querySelector('[name=' + name + ']').value = value`)
    await submit(page, '[data-passkey]')
  }),
  state('a passkey in place of the password, which was refused', async (page) => {
    await page.goto('/auth/login')
    await submit(page, '[data-passkey]')
  }),
  state('a passkey as the second step', async (page, { host, url }) => logIn(page, await ownerWithFactor(host, { origin: url }))),
  state('to confirm by a passkey', async (page, served) => {
    await enter(page, await passkeyOwner(served.host, { origin: served.url }))
    await page.goto('/auth/reauthenticate')
  }),
]

/** Hosts that have pages of their own, but for the links in mails. */
const linksAlone = { pagesEnabled: false, backendLinks: true } as const

const takesNoLinks = 'Takes no links'

const linkPages: PageState[] = [
  state(
    'the link of a sign-up with a passkey, in another browser',
    async (page, { host, url }) => {
      const { link } = await newcomer(host, { authenticator: newAuthenticator({ origin: url }) })
      await page.goto(`/auth/activate/${link}`)
    },
    { settings: signupSettings },
  ),
  state('the link of a sign-up', async (page, { host }) => page.goto(`/auth/activate/${(await pending(host)).link}`)),
  state('the link of a sign-up, in the browser that signed up', async (page, { host }) => {
    const email = newAddress()
    await page.goto('/auth/signup')
    await sendInPage(page, { email, password })
    await page.goto(`/auth/activate/${tokenOf(await host.mails.next({ kind: 'activation', to: email }))}`)
  }),
  state('the link of a sign-up, used', async (page, { host }) => {
    await page.goto(`/auth/activate/${(await pending(host)).link}`)
    await sendInPage(page, { password })
  }),
  state(
    'the link of a sign-up, used where only the pages behind links are on',
    async (page, { host }) => {
      await page.goto(`/auth/activate/${(await pending(host)).link}`)
      await sendInPage(page, { password })
    },
    { settings: linksAlone },
  ),
  state('the link of a second sign-up, with a wrong password', async (page, { host }) => {
    const { email } = await pending(host)
    await host.browser().post('/auth/signup').send({ email, password: otherPassword })
    await page.goto(`/auth/activate/${tokenOf(await host.mails.next({ kind: 'activation', to: email }))}`)
    await sendInPage(page, { password: 'not this one' })
  }),
  state('the link to another password', openReset),
  state('the link to another password, which is too short', async (page, served) => {
    await openReset(page, served)
    await sendInPage(page, { new_password: 'short', confirm_password: 'short' })
  }),
  state('the link to another password, used', async (page, served) => {
    await openReset(page, served)
    await sendInPage(page, { new_password: otherPassword, confirm_password: otherPassword })
  }),
  state(
    'the link to another password, used where only the pages behind links are on',
    async (page, served) => {
      await openReset(page, served)
      await sendInPage(page, { new_password: otherPassword, confirm_password: otherPassword })
    },
    { settings: linksAlone },
  ),
  state('the link that verifies an address', openVerification),
  state('the link that verifies an address, used', async (page, served) => {
    await openVerification(page, served)
    await sendInPage(page)
  }),
  state('the link that verifies an address, in another browser', async (page, served) => {
    await openVerification(page, served, { isElsewhere: true })
  }),
  state('the link to another address', async (page, served) => {
    await arrive(page, served)
    await openChange(page, served)
  }),
  state('the link to another address, used', async (page, served) => {
    await arrive(page, served)
    await openChange(page, served)
    await sendInPage(page)
  }),
  state('the link to another address, in another browser, with a wrong password', async (page, served) => {
    await arrive(page, served)
    await openChange(page, served, { isElsewhere: true })
    await sendInPage(page, { password: 'not this one' })
  }),
  state('the link to another address of an account without a password, in another browser', async (page, served) => {
    await arriveByProvider(page, served)
    await openChange(page, served, { isElsewhere: true })
    await sendInPage(page)
  }),
  state('the link to another address, which belongs to another account by now', async (page, served) => {
    await arrive(page, served)
    const email = await openChange(page, served)
    await signedIn(served.host, { email })
    await sendInPage(page)
  }),
  state('the link that undoes a change', openUndo),
  state('the link that undoes a change, used', async (page, served) => {
    await openUndo(page, served)
    await sendInPage(page)
  }),
  state('the link that undoes a change, whose address belongs to another account by now', async (page, served) => {
    const member = await arrive(page, served)
    await openChange(page, served)
    await sendInPage(page)
    const link = await undoTokenOf(served.host, member.email)
    await signedIn(served.host, { email: member.email })
    await page.goto(`/auth/security/undo/${link}`)
    await sendInPage(page)
  }),
  state('the code after a mailed link', openSecondFactor, { settings: linksAlone }),
  state(
    'the code after a mailed link, which is wrong',
    async (page, served) => {
      await openSecondFactor(page, served)
      await sendInPage(page, { code: '000000' })
    },
    { settings: linksAlone },
  ),
  state(
    'the code after a mailed link, too late',
    async (page, served) => {
      await openSecondFactor(page, served)
      served.host.clock.advance(3_600)
      await sendInPage(page, { code: '000000' })
    },
    { settings: linksAlone },
  ),
  state(
    'the code after a provider',
    async (page, { host }) => {
      const { userId } = await enrolled(host)
      const { subject } = await addIdentity(host.knex, userId, { createdAt: new Date(host.clock.now().getTime() - 172_800_000) })
      const begun = await page.request.get('/auth/oauth/corp/login', { maxRedirects: 0 })
      const { callbackQuery } = host.provider.authorize(String(begun.headers()['location']), { profile: { sub: subject } })
      await page.goto(`/auth/oauth/corp/callback?${new URLSearchParams(callbackQuery)}`)
    },
    { settings: { ...linksAlone, oauthSuccessRedirect: 'https://app.example.test/home' } },
  ),
  state('a link that is over', (page) => page.goto(`/auth/activate/${'x'.repeat(43)}`)),
  state(
    'a link of an account that takes none',
    async (page, served) => {
      const { email } = await signedIn(served.host)
      const link = await resetLink(served.host, email)
      await served.host.knex('auth_users').where({ email }).update({ name: takesNoLinks })
      await page.goto(`/auth/password-reset/${link}`)
    },
    { options: { refusesEmailLink: ({ name }) => name === takesNoLinks } },
  ),
  state('a link that was opened too often', async (page, { host }) => {
    const { link } = await pending(host)
    for (let count = 0; count < 60; count += 1) await page.request.get(`/auth/activate/${link}`)
    await page.goto(`/auth/activate/${link}`)
  }),
  state('a link while the database does not answer', async (page, { host }) => {
    await withoutTable(host, 'auth_user_tokens', () => page.goto(`/auth/activate/${'x'.repeat(43)}`))
  }),
]
async function openReset(page: Page, { host }: PagesHost): Promise<void> {
  const { email } = await signedIn(host)
  await page.goto(`/auth/password-reset/${await resetLink(host, email)}`)
}

async function openVerification(page: Page, served: PagesHost, { isElsewhere = false } = {}): Promise<void> {
  const { email } = await arrive(page, served, { emailVerifiedAt: null })
  await page.goto(`${account}/email`)
  await sendInPage(page)
  if (isElsewhere) await page.context().clearCookies()
  await page.goto(`/auth/email-verify/${tokenOf(await served.host.mails.next({ kind: 'email_verification', to: email }))}`)
}

/** Returns the new address. */
async function openChange(page: Page, { host }: PagesHost, { isElsewhere = false } = {}): Promise<string> {
  const newEmail = newAddress()
  await page.goto(`${account}/email`)
  await sendInPage(page, { new_email: newEmail }, 'form:has([name="new_email"])')
  if (isElsewhere) await page.context().clearCookies()
  await page.goto(`/auth/email-change/${tokenOf(await host.mails.next({ kind: 'email_change', to: newEmail }))}`)
  return newEmail
}

async function openUndo(page: Page, served: PagesHost): Promise<void> {
  const { email } = await arrive(page, served)
  await page.goto(`${account}/password`)
  await sendInPage(page, { current_password: password, new_password: otherPassword, confirm_password: otherPassword })
  await page.goto(`/auth/security/undo/${await undoTokenOf(served.host, email)}`)
}

async function openSecondFactor(page: Page, { host }: PagesHost): Promise<void> {
  const { email } = await enrolled(host)
  await page.request.post('/auth/email-login/request', { data: { email } })
  await page.goto(`/auth/email-login/${tokenOf(await host.mails.next({ kind: 'email_login', to: email }))}`)
  await sendInPage(page)
}

/** What a person sees while a table cannot be read. */
async function withoutTable({ knex }: LocalHost, table: string, see: () => Promise<unknown>): Promise<void> {
  await knex.schema.renameTable(table, `${table}_away`)
  try {
    await see()
  } finally {
    await knex.schema.renameTable(`${table}_away`, table)
  }
}

const broken: PageState[] = [
  state(
    'a page of the account while the database does not answer',
    async (page, served) => {
      await arrive(page, served)
      await withoutTable(served.host, 'auth_sessions', () => page.goto(account))
    },
    { settings: { tokenDelivery: 'session' } },
  ),
  state('a page that fails', async (page, served) => {
    await arrive(page, served)
    await withoutTable(served.host, 'auth_passkeys', () => page.goto(security))
  }),
]

/** So few that a form is soon sent too often. */
const few = { attempts: 3, windowSeconds: 60 }
/** A form that was sent too often: its page says when to try again. */
const throttled = (path: string, open: PageState['open'], form = 'main form', settings: PageState['settings'] = {}) =>
  state(
    `${path}, sent too often`,
    async (page, served) => {
      await open(page, served)
      const { action, fields } = (await page.evaluate(filledIn(form))) as { action: string; fields: Record<string, string> }
      for (let count = 0; count < 20; count += 1) {
        const answer = await page.request.post(action, { form: fields, headers: { Origin: served.url }, maxRedirects: 0 })
        if (answer.status() === 429) break
      }
      await submit(page, form)
    },
    { settings, options: { throttle: { routes: few, signup: few, links: few, login: few } } },
  )
/** Fills a form with what has the right shape, and returns it. */
const filledIn = (form: string) => `(() => {
  const { action, elements } = document.querySelector(${JSON.stringify(form)})
  const named = [...elements].filter(({ name }) => name)
  for (const field of named) {
    if (field.type === 'email') field.value = 'somebody@example.test'
    else if (field.type !== 'hidden' && field.value === '') field.value = '12345678'
  }
  return { action, fields: Object.fromEntries(named.map(({ name, value }) => [name, value])) }
})()`

const tooOften: PageState[] = [
  throttled('/login', (page) => page.goto('/auth/login')),
  throttled('/email-login/request', async (page) => {
    await page.goto('/auth/login')
    await page.evaluate(`document.querySelector('main form').action = document.querySelector('${emailButton}').formAction`)
  }),
  throttled('/passkeys/login', (page) => page.goto('/auth/login'), '[data-passkey]'),
  throttled('/signup', (page) => page.goto('/auth/signup')),
  throttled('/signup/passkey', (page) => page.goto('/auth/signup'), '[data-passkey="create"]', passkeyAlone),
  throttled('/forgot-password', (page) => page.goto('/auth/forgot-password')),
  throttled('/check-mail', async (page) => {
    await page.goto('/auth/forgot-password')
    await sendInPage(page, { email: newAddress() })
  }),
  throttled('/mfa', async (page, { host }) => logIn(page, await enrolled(host))),
  throttled('/account/devices', async (page, served) => {
    await otherDevices(served, await arrive(page, served), 1)
    await page.goto(`${account}/devices`)
  }),
  ...['/recovery-codes', '/turn-off'].map((path) =>
    throttled(`/account/security${path}`, async (page, served) => {
      await arriveWithFactor(page, served)
      await page.goto(`${security}${path}`)
    }),
  ),
  ...[
    '/reauthenticate',
    '/account/profile',
    '/account/email',
    '/account/password',
    '/account/connections',
    '/account/security/authenticator',
    '/account/security/passkeys/add',
  ].map((path) =>
    throttled(path, async (page, served) => {
      await arrive(page, served)
      await page.goto(`/auth${path}`)
    }),
  ),
]

const quiz = task({
  key: 'quiz',
  when: (user) => user.name === 'quizzed',
  complete: () => undefined,
  page: {
    title: 'One question',
    html: () => '<div class="field"><label for="answer">What is the answer?</label><input id="answer" name="answer"></div>',
  },
})

/** Somebody whose login owes tasks, at the page of the first one. */
const owes = (
  name: string,
  changes: Parameters<typeof person>[1],
  go: (page: Page, served: PagesHost, email: string) => Promise<unknown>,
) =>
  state(
    name,
    async (page, served) => {
      const who = await person(served.host, changes)
      await logIn(page, who)
      await go(page, served, who.email)
    },
    { options: { loginTasks: [...everyTask, quiz] } },
  )
const administrator = { ...expired, isAdmin: true }

async function typeCode(page: Page, { host }: PagesHost, email: string): Promise<void> {
  await sendInPage(page, { code: await codeFor(host, { email }) })
}

async function toFactor(page: Page, served: PagesHost, email: string): Promise<void> {
  await typeCode(page, served, email)
  await sendInPage(page)
}

const loginTasks: PageState[] = [
  owes('a login that owes a code', administrator, async () => undefined),
  owes('a login that owes a code, with a wrong one', administrator, (page) => sendInPage(page, { code: '12345678' })),
  owes('a login that owes a code, sent again', administrator, (page) => sendInPage(page, {}, 'main form >> nth=1')),
  owes('a login that owes a new password', administrator, typeCode),
  owes('a login that owes a new password, with two that differ', administrator, async (page, served, email) => {
    await typeCode(page, served, email)
    await sendInPage(page, { new_password: otherPassword, confirm_password: 'another' })
  }),
  owes('a login that owes a factor', { isAdmin: true }, typeCode),
  owes('a login that owes a factor, at its secret', { isAdmin: true }, toFactor),
  owes('a login that owes a factor, with a wrong code', { isAdmin: true }, async (page, served, email) => {
    await toFactor(page, served, email)
    await sendInPage(page, { code: '000000' })
  }),
  owes('a login that owes a factor, at its recovery codes', { isAdmin: true }, async (page, served, email) => {
    await toFactor(page, served, email)
    const secret = String(await page.locator('.key').textContent()).replaceAll(' ', '')
    await sendInPage(page, { code: authenticator(secret, served.host.clock).code() })
  }),
  owes('a login that owes a step of the host, with its page', { name: 'quizzed' }, async () => undefined),
  owes('a login that owes a step of the host, without a page', { name: 'asked' }, async () => undefined),
  state('a login that owes nothing any more', (page) => page.goto('/auth/tasks'), { options: { loginTasks: everyTask } }),
]

const approval: PageState[] = [
  state(
    'a sign-up that waits for approval',
    async (page, { host }) => {
      await page.goto(`/auth/activate/${(await pending(host)).link}`)
      await sendInPage(page, { password })
    },
    { settings: approving },
  ),
  state('the sign-in page, where the account waits for approval', async (page, { host }) => logIn(page, await applicant(host)), {
    settings: approving,
  }),
]

/** In mode `open` an invitation changes no other state. */
const inviting = { invitationsEnabled: true } as const
const openInvitation = async (page: Page, { host }: PagesHost, input: NewInvitation = {}) =>
  page.goto(String((await host.auth.service.invitations.create(input)).url).replace(/^https?:\/\/[^/]+/, ''))

const invitations: PageState[] = [
  state('an invitation', (page, served) => openInvitation(page, served), { settings: inviting }),
  state(
    'an invitation, accepted where only the pages behind links are on',
    async (page, served) => {
      await openInvitation(page, served)
      await sendInPage(page)
    },
    { settings: { ...linksAlone, ...inviting } },
  ),
  state(
    'to sign up with an invitation',
    async (page, served) => {
      await openInvitation(page, served)
      await sendInPage(page)
    },
    { settings: inviting },
  ),
  state('to sign up, where an invitation is needed', (page) => page.goto('/auth/signup'), { settings: { signupMode: 'invite' } }),
  state(
    'an invitation, put aside where only the pages behind links are on',
    async (page, served) => {
      await openInvitation(page, served)
      await page.evaluate("document.querySelector('main form').action = '/auth/invitations/leave'")
      await sendInPage(page)
    },
    { settings: { ...linksAlone, ...inviting } },
  ),
  state(
    'an invitation, for somebody who is signed in',
    async (page, served) => {
      await arrive(page, served)
      await openInvitation(page, served)
    },
    { settings: inviting },
  ),
  state(
    'an invitation of another address, for somebody who is signed in',
    async (page, served) => {
      await arrive(page, served)
      await openInvitation(page, served, { email: `somebody-with-a-long-address-${newAddress()}`, send: false })
    },
    { settings: inviting },
  ),
  state(
    'a mail to sign in that is awaited with an invitation',
    async (page, served) => {
      await openInvitation(page, served)
      await sendInPage(page)
      await page.goto('/auth/login')
      await sendInPage(page, { email: newAddress() }, 'main form', emailButton)
    },
    { settings: inviting },
  ),
  state(
    'the sign-in page, where a provider was refused for the invitation',
    async (page, served) => {
      await openInvitation(page, served)
      await sendInPage(page)
      await page.goto('/auth/login?error=INVITATION_REQUIRED')
    },
    { settings: inviting },
  ),
  state(
    'an invitation, used by somebody who is signed in',
    async (page, served) => {
      await arrive(page, served)
      await openInvitation(page, served)
      await sendInPage(page)
    },
    { settings: inviting },
  ),
  state(
    'an invitation, used after the person signed out elsewhere',
    async (page, served) => {
      await arrive(page, served)
      await openInvitation(page, served)
      await page.context().clearCookies()
      await sendInPage(page)
    },
    { settings: inviting },
  ),
]

const leaving = { accountDeletion: 'soft', accountRestoreUrlTemplate: null } as const
const openDeletion = async (page: Page, served: PagesHost) => {
  const member = await arrive(page, served)
  await page.goto(`${account}/delete`)
  return member
}
const closeAccount = async (page: Page, served: PagesHost) => {
  const member = await openDeletion(page, served)
  await page.check('#understood')
  await sendInPage(page, {}, 'main form')
  return member
}
const openWayBack = async (page: Page, served: PagesHost) => {
  const { email } = await closeAccount(page, served)
  await page.goto(`${account}/restore/${tokenOf(await served.host.mails.next({ kind: 'account_deletion', to: email }))}`)
}

const deletions: PageState[] = [
  state('to delete the account later', openDeletion, { settings: leaving }),
  state('to delete the account at once', openDeletion, { settings: { accountDeletion: 'immediate' } }),
  state(
    'to delete the account, without the box',
    async (page, served) => {
      await openDeletion(page, served)
      await submit(page, 'main form')
    },
    { settings: leaving },
  ),
  state('an account that is closed', closeAccount, { settings: leaving }),
  state('an account that is deleted', closeAccount, { settings: { accountDeletion: 'immediate' } }),
  state('the way back, behind its link', openWayBack, { settings: leaving }),
  state(
    'the way back, used',
    async (page, served) => {
      await openWayBack(page, served)
      await sendInPage(page)
    },
    { settings: leaving },
  ),
  state(
    'the way back, after a right sign-in',
    async (page, served) => {
      await logIn(page, await closeAccount(page, served))
    },
    { settings: leaving },
  ),
  state(
    'the account, with a link to its deletion',
    async (page, served) => {
      await arrive(page, served)
      await page.goto(account)
    },
    { settings: leaving },
  ),
]

export const stateSettings = { ...mfaSettings, trustedDeviceDays: 30, ...passkeySettings, ...loginTemplate, emailLogin: 'both' } as const
export const pageStates: Readonly<Record<string, readonly PageState[]>> = {
  'signed out': signedOut,
  'by email': byEmail,
  confirming: confirmations,
  'the account': accountArea,
  'the second factor': factor,
  'what a login owes': loginTasks,
  passkeys,
  'links of mails': linkPages,
  approval,
  invitations,
  deletions,
  'what fails': broken,
  'sent too often': tooOften,
}
