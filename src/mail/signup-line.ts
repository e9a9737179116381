import type { Locale } from '../http/locale'
import type { TemplateMail } from '../mailer'

/** Says which signup an activation belongs to, so that its reader can tell an own one from a stranger's. */
export function signupLine({ at, browser }: NonNullable<TemplateMail['signup']>, locale: Locale): string {
  const time = `${new Intl.DateTimeFormat(locale, { dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC' }).format(at)} UTC`
  if (locale === 'pt-BR') return browser === null ? `O cadastro foi feito em ${time}.` : `O cadastro foi feito em ${time}, com ${browser}.`
  return browser === null ? `The account was requested on ${time}.` : `The account was requested on ${time}, with ${browser}.`
}
