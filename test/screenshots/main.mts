/**
 * `npm run screenshots` writes docs/pages/*.png: the pages of the account area as a person meets them, on a phone in light and dark, the
 * larger ones also on a desk.
 */
import { randomBytes } from 'node:crypto'
import { mkdirSync, rmSync, statSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import express from 'express'
import knex from 'knex'
import { Secret, TOTP } from 'otpauth'
import type { Page } from 'playwright-core'
import { type AuthMail, createAuthRouter, createAuthTables, createKnexStore, GitHubClient, GoogleClient } from '../../src'
import { mailbox } from '../../src/testing'
import { launchChromium } from '../demo/chromium'

const folder = join(import.meta.dirname, '../../docs/pages')
const largestMb = 3
const email = 'ada@example.com'
const password = 'a quiet harbour in winter'
const phone = { width: 390, height: 720 }
const userAgent = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'
const desk = { width: 1100, height: 720 }

const mails = mailbox()
const { url, auth, database, close } = await serve()
const chromium = await launchChromium()
const context = await chromium.newContext({ baseURL: url, locale: 'en-US', timezoneId: 'Europe/Lisbon', viewport: phone, userAgent })
const page = await context.newPage()
rmSync(folder, { recursive: true, force: true })
mkdirSync(folder, { recursive: true })
let bytes = 0

const open = (path: string) => page.goto(`/auth${path}`)
const press = async (name: string) => {
  await Promise.all([page.waitForEvent('domcontentloaded'), page.getByRole('button', { name, exact: true }).click()])
}
const fill = (label: string, text: string) => page.getByLabel(label, { exact: true }).first().fill(text)
/** Opens the link of the next mail to an address. */
const openLink = async (kind: AuthMail['kind'], to = email) => {
  for (;;) {
    const mail = await mails.next({ kind, to })
    if (mail.url !== null) return page.goto(mail.url)
  }
}

await open('/login')
await shoot('login')
await fill('Email address', email)
await fill('Password', 'not this one')
await press('Sign in')
await shoot('login-refused')
await open('/signup')
await shoot('signup')
await fill('Name (optional)', 'Ada Lovelace')
await fill('Email address', email)
await fill('Password', password)
await press('Create the account')
await shoot('check-mail')
await openLink('activation')
await shoot('activate')
await press('Activate account')
await page.waitForURL('**/auth/account')
await shoot('account', { onDesk: true })
for (const name of ['profile', 'email', 'password']) {
  await open(`/account/${name}`)
  await shoot(name)
}
const { id } = await database('auth_users').first('id')
await auth.service.linkIdentity(id, {
  provider: 'google',
  subject: '1',
  email,
  emailVerified: true,
  name: 'Ada Lovelace',
  picture: null,
  raw: {},
})
await open('/account/connections')
await shoot('connections')
await open('/account/connections/remove?provider=google')
await shoot('disconnect')
await open('/reauthenticate?return_to=/auth/account/security')
await shoot('reauthenticate')
const unplug = await plugIn()
await open('/account/security/passkeys/add')
await fill('Name of the passkey (optional)', 'Laptop')
await shoot('passkey')
await press('Add the passkey')
await page.getByText('The passkey was added.').waitFor()
await unplug() // it would take every offer of the sign-in page
for (const action of ['rename', 'remove']) {
  await open('/account/security')
  await page.locator(`a[href*="passkeys/${action}"]`).click()
  await page.waitForURL(`**/passkeys/${action}*`)
  await shoot(`${action}-passkey`)
}
await open('/account/security/authenticator')
await press('Show the QR code')
await shoot('authenticator')
const secret = String(await page.locator('.key').textContent()).replaceAll(' ', '')
await fill('Code that the app shows', codeOf(secret, Date.now()))
await press('Turn it on')
await shoot('recovery-codes')
await open('/account/security')
await shoot('security')
await open('/account/security/recovery-codes')
await shoot('new-recovery-codes')
await open('/account/security/turn-off')
await shoot('turn-off')
await signInElsewhere()
await open('/account/devices')
await shoot('devices')
await database('auth_users').update({ email_verified_at: null })
await open('/account/email')
await press('Send the link')
await openLink('email_verification')
await shoot('email-verify')
await press('Confirm address')
await open('/account/email')
await fill('New email address', 'ada@harbour.example')
await press('Send the link to the new address')
await openLink('email_change', 'ada@harbour.example')
await shoot('email-change')
await openLink('notice') // of the provider that was connected
await shoot('undo')
await open('/logout')
await shoot('sign-out')
await press('Sign out')
await shoot('signed-out')

await open('/forgot-password')
await shoot('forgot-password')
await fill('Email address', email)
await press('Send the link')
await openLink('password_reset')
await shoot('password-reset')
await open('/login')
await fill('Email address', email)
await press('Email me a link')
await shoot('check-mail-code')
const mail = await mails.next({ kind: 'email_login', to: email })
await page.goto(String(mail.url))
await shoot('email-login')
await open('/check-mail')
await fill('Code', String(mail.code).replace(/^(\d{4})/, '$1 '))
await press('Sign in')
await shoot('mfa')

await chromium.close()
await close()
console.log(`${(bytes / 1_000_000).toFixed(2)} MB in docs/pages`)
if (bytes > largestMb * 1_000_000) throw new Error(`docs/pages is larger than ${largestMb} MB`)

async function serve() {
  const database = knex({ client: 'better-sqlite3', connection: { filename: ':memory:' }, useNullAsDefault: true })
  await createAuthTables(database)
  const app = express()
  const server = app.listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const publicUrl = `http://localhost:${(server.address() as AddressInfo).port}`
  const client = { clientId: 'client', clientSecret: 'secret' }
  const auth = createAuthRouter({
    store: createKnexStore({ knex: database }),
    mailer: mails,
    environment: 'test',
    logger: { info() {}, warn() {}, error: console.error },
    theme: { name: 'Harbour', homeUrl: '/', supportUrl: 'mailto:help@example.com', accent: '#0b6e4f' },
    providers: { google: new GoogleClient(client), github: new GitHubClient(client) },
    settings: {
      jwtSecret: randomBytes(32).toString('base64'),
      publicUrl,
      tokenDelivery: 'session',
      cookieSecure: false,
      pagesEnabled: true,
      oauthEnabled: true,
      emailLogin: 'both',
      passkeysEnabled: true,
      mfaEnabled: true,
      mfaIssuer: 'Harbour',
      mfaSecretKey: randomBytes(32).toString('base64'),
    },
  })
  app.use('/auth', auth)
  const close = async () => {
    server.closeAllConnections()
    server.close()
    await auth.drain()
    await database.destroy()
  }
  return { url: publicUrl, auth, database, close }
}

/** What an authenticator app shows. */
function codeOf(secret: string, timestamp: number): string {
  return new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp })
}

/** An authenticator of the device, which does what it is asked. */
async function plugIn(): Promise<() => Promise<void>> {
  const devtools = await context.newCDPSession(page)
  await devtools.send('WebAuthn.enable')
  const device = {
    protocol: 'ctap2',
    transport: 'internal',
    hasResidentKey: true,
    hasUserVerification: true,
    isUserVerified: true,
  } as const
  await devtools.send('WebAuthn.addVirtualAuthenticator', { options: { ...device, automaticPresenceSimulation: true } })
  return async () => {
    await devtools.send('WebAuthn.disable')
  }
}

/** So that the list of devices is one. */
async function signInElsewhere(): Promise<void> {
  const iPhone =
    'Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/19.0 Mobile/15E148 Safari/604.1'
  const other = await chromium.newContext({ baseURL: url, locale: 'en-US', userAgent: iPhone })
  const tab = await other.newPage()
  await tab.goto('/auth/login')
  await tab.locator('#email').fill(email)
  await tab.locator('#password').fill(password)
  await tab.getByRole('button', { name: 'Sign in', exact: true }).click()
  await tab.waitForURL('**/auth/mfa')
  await tab.getByLabel('Code').fill(codeOf(secret, Date.now() + 30_000))
  await tab.getByRole('button', { name: 'Sign in', exact: true }).click()
  await tab.waitForURL('**/auth/account')
  await other.close()
}

async function shoot(name: string, { onDesk = false } = {}): Promise<void> {
  await page.evaluate('document.activeElement?.blur()')
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    await save(page, `${name}-${colorScheme}`)
  }
  await page.emulateMedia({ colorScheme: 'light' })
  if (!onDesk) return
  await page.setViewportSize(desk)
  await save(page, `${name}-desk`)
  await page.setViewportSize(phone)
}

async function save(page: Page, name: string): Promise<void> {
  const path = join(folder, `${name}.png`)
  await page.screenshot({ path, fullPage: true })
  bytes += statSync(path).size
}
