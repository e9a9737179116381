import { cookieJar } from '../support/cookie-jar'
import { navigate } from '../support/navigate'

export interface Visit {
  url: URL
  status: number
  body: string
  /** Every address on the way here, this one included. */
  path: URL[]
}

/** A person without a browser: keeps cookies, follows redirects by hand, submits the forms that it is shown. */
export class Visitor {
  readonly jar = cookieJar()

  async open(address: string | URL): Promise<Visit> {
    return this.#follow(new URL(address), { method: 'GET' })
  }

  /** Submits the form of the page whose action ends so, with these fields. */
  async submit(page: Visit, actionEnd: string, fields: Record<string, string> = {}): Promise<Visit> {
    const actions = [...page.body.matchAll(/<form[^>]*action="([^"]+)"/g)].map((match) => match[1] ?? '')
    const action = actions.find((candidate) => candidate.endsWith(actionEnd))
    if (action === undefined) throw new Error(`the page at ${page.url.pathname} has no form for ${actionEnd}, only: ${actions.join(', ')}`)
    return this.#follow(new URL(action, page.url), { method: 'POST', body: new URLSearchParams(fields) })
  }

  async call(method: string, address: string, body?: unknown): Promise<{ status: number; body: unknown }> {
    const headers = body === undefined ? {} : { 'content-type': 'application/json' }
    const { response, text } = await this.#send(new URL(address), {
      method,
      headers,
      body: body === undefined ? null : JSON.stringify(body),
    })
    return { status: response.status, body: text === '' ? null : JSON.parse(text) }
  }

  async #follow(first: URL, request: { method: string; body?: URLSearchParams }): Promise<Visit> {
    const path = [first]
    let { response, text } = await this.#send(first, request)
    while (response.status >= 300 && response.status < 400) {
      if (path.length > 20) throw new Error(`too many redirects: ${path.map((url) => url.pathname).join(' -> ')}`)
      const next = new URL(response.headers.get('location') ?? '', path.at(-1))
      path.push(next)
      ;({ response, text } = await this.#send(next, { method: 'GET' }, path.at(-2)))
    }
    return { url: path.at(-1) ?? first, status: response.status, body: text, path }
  }

  /** @param from the page or redirect that leads there */
  async #send(url: URL, request: RequestInit, from = url): Promise<{ response: Response; text: string }> {
    const asked = { host: url.hostname, path: url.pathname, by: from.hostname === url.hostname ? 'page' : 'link' } as const
    const cookie = this.jar.header(asked)
    const cookies = cookie ? { cookie } : {}
    const isNavigation = request.method === 'GET' && request.headers === undefined
    const headers = { ...request.headers, ...cookies }
    const response = isNavigation ? await navigate(url, cookies) : await fetch(url, { ...request, headers, redirect: 'manual' })
    this.jar.take({ 'set-cookie': response.headers.getSetCookie() }, asked)
    return { response, text: await response.text() }
  }
}
