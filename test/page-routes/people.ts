import type supertest from 'supertest'
import { type LocalHost, type LocalOptions, onLocal } from '../local/people'
import type { Browser } from '../support/app'
import type { Database } from '../support/databases'

/** `onLocal`, with the pages on. */
export function onPages(database: Database) {
  const { start, opened } = onLocal(database)
  return {
    opened,
    start: (options: LocalOptions = {}): Promise<LocalHost> =>
      start({ ...options, settings: { tokenDelivery: 'cookie', pagesEnabled: true, ...options.settings } }),
  }
}

/** What a browser sends when a person presses the button of a form of ours. */
export function sendForm(browser: Browser, path: string, fields: object = {}): supertest.Test {
  return browser.post(path).set('Origin', 'https://app.example.test').set('Sec-Fetch-Site', 'same-origin').type('form').send(fields)
}

/** What a page's hidden field or text field holds; null: there is none. */
export function fieldValue(html: string, name: string): string | null {
  const [, attributes] = new RegExp(`<input[^>]*\\bname="${name}"([^>]*)>`).exec(html) ?? []
  return attributes === undefined ? null : (/\bvalue="([^"]*)"/.exec(attributes)?.[1] ?? '')
}

/** The sentence beside a field that was refused. */
export function faultOf(html: string, name: string): string | null {
  return new RegExp(`id="${name}-fault">([^<]*)<`).exec(html)?.[1] ?? null
}

/** The sentence over a form that was refused. */
export function problemOf(html: string): string | null {
  return /<p class="problem" role="alert"[^>]*>([^<]*)</.exec(html)?.[1] ?? null
}

export function noticeOf(html: string): string | null {
  return /<p class="notice" role="status">([^<]*)</.exec(html)?.[1] ?? null
}

/** By the page, as a person does. */
export async function signInByPage(browser: Browser, { email, password }: { email: string; password: string }, path = '/auth/login') {
  return sendForm(browser, path, { email, password, remember: 'on' })
}
