import { cpSync, existsSync, readdirSync, readFileSync, rmSync, watch } from 'node:fs'
import { join } from 'node:path'
import type { DefaultTheme } from 'vitepress'
import { withMermaid } from 'vitepress-plugin-mermaid'

const root = join(import.meta.dirname, '../..')
const referenceSidebar = join(root, 'docs/reference/typedoc-sidebar.json')

const pages = join(import.meta.dirname, 'pages')

stagePages()
if (process.argv.includes('dev')) watch(join(root, 'docs'), (_event, name) => name?.endsWith('.md') && cpSync(join(root, 'docs', name), join(pages, name)))

// biome-ignore lint/style/noDefaultExport: VitePress reads the default export.
export default withMermaid({
  title: 'doorward',
  description: 'Accounts, login and sessions for an Express app, in your own database.',
  lang: 'en-US',
  srcDir: '.vitepress/pages',
  rewrites: { 'README.md': 'index.md' },
  cleanUrls: true,
  // Links to source files and examples; test/docs-links.test.ts checks every one of them.
  ignoreDeadLinks: [/(^|\/)(examples|src|test|\.ci)(\/|$)/, /LICENSE/, /^https?:\/\/localhost/],
  markdown: {
    // In the repository docs/ is a folder; in the site CHANGELOG.md and the like are pages of it.
    config: (markdown) => {
      markdown.core.ruler.push('pages-beside-docs', ({ tokens }) => {
        const links = tokens.flatMap(({ children }) => children ?? []).filter(({ type }) => type === 'link_open')
        for (const link of links) link.attrSet('href', besideDocs(link.attrGet('href') ?? ''))
      })
    },
  },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    nav: [
      { text: 'Start', link: '/getting-started' },
      { text: 'Guide', link: '/' },
      { text: 'API', link: '/reference/' },
    ],
    sidebar: [...groupsOfStartPage(), ...reference()],
  },
  // The reference is made by TypeDoc, which names files as VitePress wants them; a link to an example downloads it.
  buildEnd: ({ outDir }) => cpSync(join(root, 'examples'), join(outDir, 'examples'), { recursive: true, filter: isSource }),
})

/** VitePress finds its packages only from pages below this folder, and CHANGELOG.md is to be one of them. */
function stagePages(): void {
  rmSync(pages, { recursive: true, force: true })
  const inDocs = readdirSync(join(root, 'docs')).filter((name) => name !== '.vitepress')
  for (const name of inDocs) cpSync(join(root, 'docs', name), join(pages, name), { recursive: true })
  for (const name of ['CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md']) cpSync(join(root, name), join(pages, 'project', name.toLowerCase()))
}

function besideDocs(link: string): string {
  return link.replace(/^(?:\.\.\/)*([A-Z]{2,})\.md/, (_link, name: string) => `/project/${name.toLowerCase()}`).replace(/^docs\//, '/')
}

/** The start page is the one list of pages: each heading is a group of the sidebar, each link in it a page. */
function groupsOfStartPage(): DefaultTheme.SidebarItem[] {
  const [, ...groups] = readFileSync(join(root, 'docs/README.md'), 'utf8').split(/^## /m)
  return groups.slice(1).map((group) => ({
    text: group.slice(0, group.indexOf('\n')),
    collapsed: false,
    items: [...group.matchAll(/^- \[([^\]]+)\]\(([^)]+)\)/gm)].map(([, text = '', link = '']) => ({ text, link: pageOf(link) })),
  }))
}

function pageOf(link: string): string {
  return `/${besideDocs(link).replace(/^\//, '').replace(/\.md$/, '')}`
}

function reference(): DefaultTheme.SidebarItem[] {
  if (!existsSync(referenceSidebar)) return []
  return [{ text: 'API', collapsed: true, items: JSON.parse(readFileSync(referenceSidebar, 'utf8')) }]
}

function isSource(path: string): boolean {
  return !path.includes('node_modules')
}
