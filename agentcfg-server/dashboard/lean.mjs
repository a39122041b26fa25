// Leaves out of Preact what the dashboard has no use for: hydration, suspense, portals, classes with a life of their own, contexts,
// HTML as text, and more. Each cut names the text that goes, and the build fails where Preact has another one.

const CUTS = [
  // Hydration and suspense.
  ["128&u.__u&&(c=32&u.__u,s=u.__c.__z)&&(r.__u|=c,p=o=[],8==s.nodeType?l=B(s,o):o.push(s),l=o[0]||l),", ""],
  ["r.__u&=-161,p&&p.some(g),", "r.__u&=-161,"],
  ['if("svg"==C', '"svg"==C'],
  [/,o\)for\(s=0;.*?break\}if\(!t\)\{/, ";if(!t){"],
  [",l&&(n.__m&&n.__m(r,o),l=!1),o=null}if(C)", "}if(C)"],
  [
    /o="textarea"==C&&null!=x\.defaultValue\?null:o&&d\.call\(a\.childNodes\),!l&&o\)for\(\$=\{\},s=0;s<t\.attributes\.length;s\+\+\)\$\[\(k=t\.attributes\[s\]\)\.name\]=k\.value;for\(s in/,
    "1)for(s in",
  ],
  [':l&&"function"!=typeof k||$[s]===k||', ":$[s]===k||"],
  [/h\?\(l\|\|y&&.*?r\.__k=\[\]\):\(y&&\(t\.textContent=""\),/, "("],
  [',"dangerouslySetInnerHTML"==s?y=k:"children"==s', ',"children"==s'],
  [':"dangerouslySetInnerHTML"==s?h=k:', ":"],
  ['e,o?o[0]:u.__k&&S(u,0),l,c),o&&o.some(g)),l&&"textarea"!=C||(s="value"', 'e,u.__k&&S(u,0),l,c)),(s="value"'],
  ["!u&&(i=t.__c)&&(i=i.__z)&&(f=B(i,o=[]))&&(i==t.__e&&o.some(g),g(f),g(i)),", ""],
  // Portals.
  [
    "M.__P&&(s=l,f=(t=M.__P).namespaceURI,c=o=null,u.props&&u.props.__P!=t&&(u.__k.some(function(n){n&&J(n,n)}),u.__k=null),l=u.__k?S(u,0):null),",
    "",
  ],
  [",M.__P&&(r.__e=null,l=s)", ""],
  // Classes and contexts.
  ["C=(s=V.prototype)&&s.render,j=(s=V.contextType)&&i[s.__c],L=s?j?j.props.value:s.__:i,", "L=i,"],
  [
    "(C?r.__c=d=new V(M,L):(r.__c=d=new x(M,L),d.constructor=V,d.render=K),j&&j.sub(d),d.state||(d.state={}),",
    "(r.__c=d=new x(M,L),d.constructor=V,d.render=K,d.state={},",
  ],
  [
    "C&&(d.__s||(d.__s=d.state),V.getDerivedStateFromProps&&(d.__s==d.state&&(d.__s=_({},d.__s)),_(d.__s,V.getDerivedStateFromProps(M,d.__s)))),",
    "",
  ],
  ["M!==k&&C&&!V.getDerivedStateFromProps&&d.componentWillReceiveProps&&d.componentWillReceiveProps(M,L),", ""],
  [
    "d.componentWillUpdate&&d.componentWillUpdate(M,d.__s,L),C&&d.componentDidUpdate&&d.__h.push(function(){d.componentDidUpdate(k,b,m)})}else C&&!V.getDerivedStateFromProps&&d.componentWillMount&&d.componentWillMount(),C&&d.componentDidMount&&d.__h.push(d.componentDidMount);",
    "}",
  ],
  ["q=C?25:0;", "q=0;"],
  ["C&&(y.push.apply(d.__h,d.__k),d.__k=[]),", ""],
  [
    "d.getChildContext&&(i=_({},i,d.getChildContext())),C&&u.__c&&d.getSnapshotBeforeUpdate&&(m=d.getSnapshotBeforeUpdate(k,b)),",
    "",
  ],
  [/n=\{__e:function\(n,t,r,u\)\{for\(.*?throw f=0,n\}\}/, "n={}"],
  // The hooks hold the state.
  [/x\.prototype\.setState=function\(n,t\)\{.*?\},x\.prototype\.forceUpdate/, "x.prototype.forceUpdate"],
  ["if(i.componentWillUnmount)try{i.componentWillUnmount()}catch(t){n.__e(t,r)}", ""],
  // Formulas, HTML within pictures, comments in the page, and old names of attributes.
  [':"math"==C?f="http://www.w3.org/1998/Math/MathML"', ""],
  ['("foreignObject"==C||"http://www.w3.org/1998/Math/MathML"==f&&v.test(C))&&(f="http://www.w3.org/1999/xhtml"),', ""],
  [',t=o;(t=t&&t.nextSibling)&&8==t.nodeType&&!t.data.startsWith("$s"););return t', ";return o&&o.nextSibling"],
  ["for(t&&!t.parentNode", "t&&!t.parentNode"],
  [",o=n.__e,e=t;e&&8==e.nodeType;)e=e.nextSibling;for(o!=e&&", ",o=n.__e,e=t;o!=e&&"],
  [
    'if("http://www.w3.org/2000/svg"==i)t=t.replace(/xlink(H|:h)/,"h").replace(/sName$/,"s");else if(',
    'if("http://www.w3.org/2000/svg"!=i&&',
  ],
  // Elements, properties and places that the dashboard has none of.
  ['a="template"==C&&t.content||t,', "a=t,"],
  [
    "if(M=a.ownerDocument||document,!C)return M.createTextNode(x);t=M.createElementNS(f,C,x.is?x:a)",
    "if(!C)return document.createTextNode(x);t=document.createElementNS(f,C)",
  ],
  ['"progress"==C&&null==b?t.removeAttribute(s):null==b||b===t[s]&&("progress"!=C||b)||', "null==b||b===t[s]||"],
  ['||"value"==s&&"defaultValue"in x||"checked"==s&&"defaultChecked"in x', ""],
  ['if("string"==typeof r)n.style.cssText=r;else{if("string"==typeof u&&(n.style.cssText=u=""),u)for', "{if(u)for"],
  ['"popover"==t&&1==r?"":r', "r"],
  ["||n.props.__P?null:S(n)", "?null:S(n)"],
  ["n.__c&&!n.props.__P)", "n.__c)"],
  ["if(n.props.__P)return t;", ""],
  ["||u&&!t.props.__P", "||u"],
  ["9==r.nodeType&&(r=r.documentElement),i=(u=t&&32&t.__u)?null:r.__k,", ""],
  [
    "z(r,r.__k,i||p,p,r.namespaceURI,i?null:r.firstChild?d.call(r.childNodes):null,f,i?i.__e:r.firstChild,u,o)",
    "z(r,r.__k,p,p,r.namespaceURI,null,f,null,u,o)",
  ],
  // References that are functions.
  [
    '"ref"==f&&"function"!=typeof n?i=t[f]:o[f]=t[f];return e>2&&(o.children=e>3?d.call(arguments,2):r),m(n,',
    // A fixed class stands behind the name of the element: see elements.mjs.
    '"ref"==f?i=t[f]:o[f]=t[f];var s=n.indexOf?.(" ");if(s>0){o.class=n.slice(s+1);n=n.slice(0,s)}return e>2&&(o.children=e>3?d.call(arguments,2):r),m(n,',
  ],
  // Handlers of the capture phase.
  ['f=t!=(t=t.replace(l,"$1")),', ""],
  ["r?n.addEventListener(t,o,f):n.removeEventListener(t,o,f)", "r?n.addEventListener(t,o):n.removeEventListener(t,o)"],
  // The state and the context of a component.
  ["d.render=K,d.state={},", "d.render=K,"],
  ["k=d.props,b=d.state,d.__v=r", "d.__v=r"],
  ["&&d.shouldComponentUpdate&&!1===d.shouldComponentUpdate(M,d.__s,L)", "&&!d.shouldComponentUpdate(M)"],
  ["(d.props=M,d.state=d.__s,d.__g&=-9)", "(d.props=M,d.__g&=-9)"],
  ["d.context=L,d.props=M", "d.props=M"],
  ["d.render(d.props,d.state=d.__s,d.context)", "d.render(M)"],
  ["d.state=d.__s,A=s", "A=s"],
  ["return this.constructor(n,r)", "return this.constructor(n)"],
  ["this.props=n,this.context=t,", "this.props=n,"],
  // What other hooks, tools and tests of Preact would use; an error of a component is one of the page.
  ["&&i==n.debounceRendering||((i=n.debounceRendering)||queueMicrotask)(H)", "||queueMicrotask(H)"],
  ["(i||queueMicrotask)(H)", "queueMicrotask(H)"],
  ["return!o&&n.vnode&&n.vnode(e),e", "return e"],
  ["n.vnode&&n.vnode(r),", ""],
  ["u(n.event?n.event(r):r)", "u(r)"],
  ["n.__c&&n.__c(r,t),", ""],
  ["n.__&&n.__(t,r),", ""],
  [
    "try{t=r.__h,r.__h=[],t.some(function(n){n.call(r)})}catch(t){n.__e(t,r.__v)}",
    "t=r.__h,r.__h=[],t.some(function(n){n.call(r)})",
  ],
  ['try{"function"==typeof t?r?', '"function"==typeof t?r?'],
  ["t(null)):t.current=r}catch(t){n.__e(t,u)}", "t(null)):t.current=r"],
  ["{v=e.length;try{if(M=r.props,", "{if(M=r.props,"],
  [/\}catch\(t\)\{if\(e\.length=v,.*?n\.__e\(t,r,u\)\}\}else l=/, "}else l="],
  [/function D\(n\)\{.*?\}function E/, "function E"],
  [/"function"==typeof t\?r\?r\.__x=.*?:t\.current=r/, "t.current=r"],
  [",l=/(PointerCapture)$|Capture$/i", ""],
  ["e.namespaceURI,32&u.__u?[i]:null,f,i||S(u),32&u.__u,o)", "e.namespaceURI,null,f,i||S(u),0,o)"],
  ["$===x||l&&t.data==x||(t.data=x)", '$===x||(t["data"]=x)'],
  ["r.__u&=-161,", ""],
  ["M=r.props,L=i,", "M=r.props,"],
  ["new x(M,L)", "new x(M)"],
  ["if(r.constructor!==h)return null;", ""],
];

/** Preact's own text without them. */
export function lean(text) {
  return CUTS.reduce((left, [cut, instead]) => {
    const parts = left.split(cut);
    if (parts.length !== 2) throw new Error(`Preact: ${parts.length - 1} places of ${cut}`);
    return parts.join(instead);
  }, text);
}
