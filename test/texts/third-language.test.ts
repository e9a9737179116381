import express from 'express'
import supertest from 'supertest'
import { expect, test } from 'vitest'
import { createGuards, errorHandler, errors, type Languages, texts } from '../../src'
import { newAddress, password, post, signedIn, userOf } from '../local/people'
import { onPages, sendForm } from '../page-routes/people'
import { databases } from '../support/databases'
import { logTap } from '../support/log-tap'

const [database] = await databases()
if (!database) throw new Error('no database')
const { start } = onPages(database)

const fr = {
  'login.title': 'Connexion',
  'mail.hello': 'Bonjour,',
  'mail.activation.subject': 'Activez votre compte',
  'mail.valid.link': 'Ce lien est valable {duration}, jusqu’au {instant} (UTC).',
  'mail.identity_unlinked.lead': 'Le fournisseur « {provider} » a été dissocié.',
  'mail.password_changed.subject': 'Votre mot de passe a été modifié',
  'error.invalid_credentials': 'adresse ou mot de passe incorrect',
  'error.unauthorized': 'Veuillez vous connecter.',
  'error.not_found': 'Introuvable.',
  'error.password.too_short': 'Au moins {min} caractères.',
  'message.link_requested': 'Un message est en route.',
  'account.placeholder_name': 'Vous',
} as const
const languages: Languages = { fr }
const quiet = { logger: logTap() }

test.each([
  ['lang=fr', '?lang=fr', {}, 'en-US'],
  ['Accept-Language: fr-CA', '', { 'Accept-Language': 'fr-CA' }, 'en-US'],
  ["defaultLocale: 'fr'", '', {}, 'fr'],
] as const)('%s finds it in pages, mails, answers and error envelopes', async (_, query, headers, defaultLocale) => {
  const host = await start({ settings: { tokenDelivery: 'both', defaultLocale }, options: { languages } })
  const email = newAddress()

  const page = await host.browser().get(`/auth/login${query}`).set(headers)
  expect(page.text).toContain('<h1>Connexion</h1>')
  const refused = await post(host, `/login${query}`, { email, password }, headers)
  expect(refused.body).toEqual({ detail: 'adresse ou mot de passe incorrect', code: 'UNAUTHORIZED', details: {} })
  const weak = await post(host, `/signup${query}`, { email, password: 'short' }, headers)
  expect(weak.body.details.message).toBe('Au moins 12 caractères.')
  await post(host, `/signup${query}`, { email, password }, headers)
  const mail = await host.mails.next({ kind: 'activation', to: email })
  expect([mail.locale, mail.subject]).toEqual(['fr', 'Activez votre compte'])
  expect(mail.text).toMatch(/^Bonjour,\n[\s\S]*Ce lien est valable 7 jours, jusqu’au \d/)
  expect(mail.html).toContain('<html lang="fr" dir="ltr">')
  expect(mail.html).toContain('Activate account') // missing in French
  const requested = await post(host, `/password-reset/request${query}`, { email }, headers)
  expect(requested.body.message).toBe('Un message est en route.')
})

test('a form of a page explains a refused password, and a notice follows defaultLocale', async () => {
  const host = await start({ settings: { defaultLocale: 'fr' }, options: { languages } })
  const weak = await sendForm(host.browser(), '/auth/signup', { email: newAddress(), password: 'short' })
  expect(weak.text).toContain('Au moins 12 caractères.')

  const { email } = await signedIn(host)
  const { id } = await userOf(host, email)
  await host.auth.service.changePassword({
    userId: id,
    currentPassword: password,
    newPassword: 'an orange tent by the lake',
  })
  expect((await host.mails.next({ kind: 'notice', to: email })).subject).toBe('Votre mot de passe a été modifié')
})

test('a mail template of the host is told the language', async () => {
  const activation = ({ locale }: { locale: string }) => ({ subject: `in ${locale}`, text: 'x', html: 'x' })
  const host = await start({ settings: { tokenDelivery: 'both' }, options: { languages, templates: { mails: { activation } } } })
  const email = newAddress()
  await post(host, '/signup?lang=fr', { email, password })
  expect((await host.mails.next({ kind: 'activation', to: email })).subject).toBe('in fr')
})

test('guards of the router, guards alone and errorHandler() speak it, and an error of the host in the languages that it has', async () => {
  const host = await start({ options: { languages } })
  const alone = createGuards({
    settings: { jwtSecret: 'a secret of forty-three characters, or so....', defaultLocale: 'fr' },
    languages,
    ...quiet,
  })
  class ClosedError extends errors.ForbiddenError {
    static override readonly detail = { 'en-US': 'Closed.', 'pt-BR': 'Fechado.', fr: 'Fermé.' }
  }
  const app = express()
  app.get('/router', host.auth.guards.requireUser())
  app.get('/alone', alone.requireAuth())
  app.get('/missing', () => {
    throw new errors.NotFoundError()
  })
  app.get('/closed', () => {
    throw new ClosedError()
  })
  app.use(errorHandler({ languages, ...quiet }))
  const detailOf = async (path: string) => (await supertest(app).get(path)).body.detail

  expect(await detailOf('/router?lang=fr')).toBe('Veuillez vous connecter.')
  expect(await detailOf('/alone')).toBe('Veuillez vous connecter.')
  expect(await detailOf('/missing?lang=fr')).toBe('Introuvable.')
  expect(await detailOf('/closed?lang=fr')).toBe('Fermé.')
  expect(await detailOf('/closed?lang=de')).toBe('Closed.')
})

test('boot refuses unknown keys and placeholders of mails and errors, and a defaultLocale without texts', async () => {
  const boot = (languages: object, defaultLocale = 'en-US') =>
    start({ settings: { defaultLocale }, options: { languages: languages as Languages } })

  await expect(boot({ fr: { 'mail.activation.title': 'x' } })).rejects.toThrow('["mail.activation.title"] is not a text key')
  await expect(boot({ fr: { 'mail.hello_name': '{nom}' } })).rejects.toThrow('holds {nom}, which is never filled in; it may hold {name}')
  await expect(boot({ fr: { 'error.email_taken': '{email}' } })).rejects.toThrow('it has no placeholders')
  await expect(boot({ fr: {} }, 'de')).rejects.toThrow('defaultLocale (AUTH_DEFAULT_LOCALE) is "de", which has no texts')
  await expect(boot({ 'fr-abcde-fghij-ab-cde-abc': {} })).rejects.toThrow('not a language tag')
  expect(() => createGuards({ settings: { jwtSecret: 'a secret of forty-three characters, or so....', defaultLocale: 'fr' } })).toThrow(
    'give them in option languages',
  )
  expect(() => errorHandler({ languages: { fr: { 'error.none': 'x' } } as Languages })).toThrow('is not a text key')
})

test('every error has a text by key', () => {
  for (const [name, type] of Object.entries(errors)) {
    if (!('detail' in type)) continue
    const key = Object.entries(texts['en-US']).find(([key, text]) => key.startsWith('error.') && text === type.detail['en-US'])?.[0]
    expect([name, key]).toEqual([name, expect.stringMatching(/^error\./)])
  }
})
