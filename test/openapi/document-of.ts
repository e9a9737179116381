import supertest from 'supertest'
import type { Mounted } from '../support/app'
import type { OpenApi } from '../support/openapi'

export async function documentOf({ app, prefix }: Pick<Mounted, 'app' | 'prefix'>): Promise<OpenApi> {
  const answer = await supertest(app).get(`${prefix}/openapi.json`)
  if (answer.status !== 200) throw new Error(`/openapi.json answered ${answer.status}: ${answer.text}`)
  return answer.body as OpenApi // that it is one, the linter says
}
