import { expect, test } from 'vitest'
import { type Languages, texts } from '../../src'
import { placeholdersOf } from '../../src/core/texts/phrase-book'
import { appPerTest } from '../support/app-per-test'

const start = appPerTest()
const settings = { tokenDelivery: 'cookie', pagesEnabled: true } as const
const withLanguages = (languages: object) => start({ settings, options: { languages: languages as Languages } })

test('both languages have every text, with the same placeholders', () => {
  for (const [key, english] of Object.entries(texts['en-US'])) {
    const portuguese = texts['pt-BR'][key as keyof (typeof texts)['pt-BR']]
    expect([key, portuguese.length > 0, placeholdersOf(portuguese).sort()]).toEqual([key, true, placeholdersOf(english).sort()])
  }
})

test('a third language is found by lang and Accept-Language, and falls back to English; what is missing is one line at boot', async () => {
  const mounted = await withLanguages({ fr: { 'login.title': 'Connexion', 'language.name': 'Français' }, ar: { 'login.title': 'دخول' } })
  for (const request of [
    mounted.browser().get('/auth/login?lang=fr'),
    mounted.browser().get('/auth/login').set('Accept-Language', 'fr-CA'),
  ]) {
    const { text } = await request
    expect(text).toContain('<html lang="fr" dir="ltr">')
    expect(text).toContain('<h1>Connexion</h1>')
    expect(text).toContain('Email address')
  }
  const arabic = await mounted.browser().get('/auth/login?lang=ar')
  expect(arabic.text).toContain('<html lang="ar" dir="rtl">')
  const lines = mounted.logs.entries.filter(({ message }) => message.includes('lacks some texts'))
  expect(lines.map(({ fields }) => fields)).toEqual([
    expect.objectContaining({ language: 'fr', count: Object.keys(texts['en-US']).length - 2 }),
    expect.objectContaining({ language: 'ar', count: Object.keys(texts['en-US']).length - 1 }),
  ])
})

test('other words in one of our languages leave the rest as it is, and are escaped', async () => {
  const mounted = await withLanguages({ 'en-US': { 'login.title': '<b>Come in</b>' } })
  const { text } = await mounted.browser().get('/auth/login')
  expect(text).toContain('<h1>&lt;b&gt;Come in&lt;/b&gt;</h1>')
  expect(text).toContain('Email address')
  expect(mounted.logs.entries.filter(({ message }) => message.includes('lacks some texts'))).toEqual([])
})

test.each([
  [{ fr: { 'login.titel': 'x' } }, /\["login\.titel"\] is not a text key/],
  [{ fr: { 'login.title': 'Connexion {name}' } }, /holds \{name\}, which is never filled in; it has no placeholders/],
  [{ fr: { 'login.with_provider': '{providr}' } }, /it may hold \{provider\}/],
  [{ fr: { 'login.title': '' } }, /must be a text/],
  [{ fr: 'x' }, /languages\.fr must be an object/],
  [{ 'f"r': {} }, /not a language tag/],
  [[], /languages must be an object/],
])('boot refuses %j', async (languages, sentence) => {
  await expect(withLanguages(languages)).rejects.toThrow(sentence)
})
